"""changes: the published changes since a position, for consumers of the published tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from strandline.cli import show
from strandline.cli.console import escape, table
from strandline.cli.groups import Places
from strandline.cli.options import AsJson, Pipeline
from strandline.errors import InputError
from strandline.visible import number_of

_MOST_DIGITS = 18


def changes(
    pipeline: Pipeline,
    since: Annotated[
        str,
        typer.Option(
            metavar="POSITION", help="Position of the ledger: `next` of the last answer. [0]"
        ),
    ] = "0",
    *,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """List what runs have changed since a ledger position.

    Of each run the dates, the counts and the verdict. Reverts and erasures are changes, too. Days
    are complete once all of their slots are closed. No engine is started.
    """
    from strandline.pipeline.views.changes import changes_of  # noqa: PLC0415

    found = changes_of(at.spec(pipeline), at.root, _position(since))
    show.document(found, as_json=as_json, human=_line_each)


def _position(text: str) -> int:
    """The position in an option.

    Raises:
        InputError: it is not a whole number.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        way_out = "give the `next` of an earlier answer, or 0 for all runs"
        raise InputError("--since", f"{text!r} is not a position of the ledger", way_out)
    return int(text)


def _line_each(found: Mapping[str, Any]) -> None:
    if found["runs"]:
        names = ("run", "kind", "changed dates", "+", "~", "-", "completed", "verdict")
        lines = table(*names, first="position")
        for run in found["runs"]:
            lines.add_row(*_cells(run))
        show.out.print(lines)
    else:
        show.out.print(f"nothing was published after position {found['since']}")
    show.out.print(f"next: --since {found['next']}")


def _cells(run: Mapping[str, Any]) -> list[str]:
    """The cells of a run's line; counts and dates are of its table of results."""
    name = next((n for n in ("pairs", "windows") if n in run["counts"]), "windows")
    counts = run["counts"].get(name, {})
    dates = "not kept" if run["dates"] is None else _ranges(run["dates"].get(name, ()))
    numbers = [f"{counts.get(op, 0):,}" for op in ("insert", "update", "delete")]
    verdict = escape(run["verdict"])
    position, run_id = str(run["position"]), escape(run["run_id"])
    return [position, run_id, run["kind"], dates, *numbers, _ranges(run["completed"]), verdict]


_MOST_RANGES = 3


def _ranges(ranges: Sequence[Sequence[str]]) -> str:
    shown = [first if first == last else f"{first} to {last}" for first, last in ranges]
    more = len(shown) - _MOST_RANGES
    beyond = f" and {number_of(more, 'more range')}" if more > 0 else ""
    return ", ".join(shown[:_MOST_RANGES]) + beyond or "none"
