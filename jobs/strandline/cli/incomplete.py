"""incomplete: the windows of a pipeline that are not complete, with their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from strandline.cli import show, words
from strandline.cli.console import escape, table
from strandline.cli.groups import Places
from strandline.cli.options import AsJson, Pipeline, Since, Until, asked_days
from strandline.quality.figures import share_so_far
from strandline.visible import number_of

MOST_LISTED = 100_000
_LEAST_WIDTH = 72
"""The width in characters of a table whose instants have a line each, with room for the reasons."""


def incomplete(
    pipeline: Pipeline,
    *,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int, typer.Option(min=1, max=MOST_LISTED, help="The most windows to list, newest first.")
    ] = 50,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Show which windows are incomplete, and why.

    A window (over all keys) is incomplete if it is open, still accepts late records, is empty
    between others, has refused late records, or is to be recomputed. Shown are the last 90 days, or
    those of --since and --until. No engine is started. The exit code is 0 whatever is shown.
    """
    from strandline.pipeline.views.incomplete import incomplete_in  # noqa: PLC0415
    from strandline.pipeline.views.shown import Shown  # noqa: PLC0415

    asked = asked_days(since, until)
    shown = Shown.of(at.spec(pipeline), at.root)
    found = incomplete_in(shown, asked["since"], asked["until"], limit=limit)
    show.document(found, as_json=as_json, human=_page)


def _page(found: Mapping[str, Any]) -> None:
    """Print the number of incomplete windows by cause, and the newest of them."""
    name, out, unit = escape(found["pipeline"]), show.out, found["unit"]
    colour = "yellow" if found["incomplete"] else "green"
    share = f"{found['incomplete']:,} of {number_of(found['slots'], unit)} incomplete"
    out.print(f"[bold]{name}[/]: [{colour}]{share if found['slots'] else f'no {unit} there'}[/]")
    if found["notice"]:
        out.print(f"note: {escape(found['notice'])}")
    facts = show.facts_table()
    facts.add_row("shown", words.shown_days(found["days"]))
    facts.add_row("processed up to", found["processed_up_to"] or "no midnight yet")
    if found["watermark"]:
        facts.add_row("watermark", escape(found["watermark"]))
    if found["causes"]:
        facts.add_row("causes", show.counted(found["causes"]))
    out.print(facts)
    _print_listed([_shown(one) for one in found["listed"]], unit)
    if found["left_out"]:
        out.print(f"and {found['left_out']:,} older ones: --limit and --until show them")


def _print_listed(listed: Sequence[tuple[str, ...]], unit: str) -> None:
    """Print windows or slots as a table, or where it would fold their instants, as paragraphs."""
    if listed and show.out.width >= _LEAST_WIDTH:
        show.out.print(_lines(listed, unit))
        return
    for start, until, state, share, why in listed:
        show.out.print(f"[bold]{start}[/] to {until}: {state}, {share}\n  {why}")


def _shown(one: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """A window or slot as texts: start, end, state, share of its records, and reasons."""
    start, end = one["slot_start"], one["slot_end"]
    until = end[11:] if start[:11] == end[:11] else end
    why = "; ".join(cause["sentence"] for cause in one["why"])
    return start, until, one["state"], share_so_far(one["share"], one["state"]), escape(why)


def _lines(listed: Sequence[tuple[str, ...]], unit: str) -> Table:
    """A line for each window or slot."""
    lines = table("to", "state", "complete", "why", first=f"{unit} from")
    for number in (0, 1, 3):
        lines.columns[number].no_wrap = True
    lines.columns[3].justify = "right"
    for one in listed:
        lines.add_row(*one)
    return lines
