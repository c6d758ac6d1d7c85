"""acknowledge: the end of findings about published data that stays as it is; without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from strandline.cli import show, words
from strandline.cli.console import escape
from strandline.cli.groups import Places
from strandline.cli.options import AsJson, Pipeline, RequestedBy, not_empty, require_reason
from strandline.visible import number_of


def acknowledge(
    pipeline: Pipeline,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of findings, as status lists them; by default all that can be.",
            metavar="FINDING",
        ),
    ] = None,
    *,
    reason: Annotated[str, typer.Option(help="Why the data stays as it is; kept in the history.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the findings; write nothing.")
    ] = False,
    requested_by: RequestedBy = None,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Take findings about published data out of status and report.

    For data that will not be mended. What a later run finds is shown again, except for known gaps.
    """
    from strandline.pipeline.manage.acknowledge import acknowledge as write_step  # noqa: PLC0415

    require_reason(reason, "why the data stays as it is")
    for name in names or ():
        not_empty("FINDING", name, "name one, or none for all of them")
    found = write_step(
        at.spec(pipeline),
        at.root,
        names or (),
        reason=reason,
        requested_by=requested_by,
        dry_run=dry_run,
    )
    show.document({**found, "dry_run": dry_run}, as_json=as_json, human=_acknowledged)


def _acknowledged(found: Mapping[str, Any]) -> None:
    """Print the acknowledged findings."""
    these = found["acknowledged"]
    name, many = f"[bold]{escape(found['pipeline'])}[/]", number_of(len(these), "finding")
    if not these:
        show.out.print(f"{name}: nothing to acknowledge, no finding stands that can be")
        return
    show.out.print(f"{name}: {many} {'would be ' if found['dry_run'] else ''}acknowledged")
    show.out.print("".join(words.finding_lines(these)).rstrip("\n"))
