"""erase: the removal of a person's rows from all tables with single records; without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strandline.cli import show
from strandline.cli.console import escape
from strandline.cli.groups import Places
from strandline.cli.options import AsJson, Pipeline, RequestedBy, require_reason
from strandline.errors import StrandlineError
from strandline.visible import number_of

if TYPE_CHECKING:
    from strandline.lake.store.lake import Lake
    from strandline.spec import PipelineSpec


def erase(
    pipeline: Pipeline,
    where: Annotated[
        str,
        typer.Option(
            metavar="EXPRESSION", help="SQL condition on rows of quarantine: device = 'd-1'."
        ),
    ],
    reason: Annotated[str, typer.Option(help="Reason; kept in the run history, so name nobody.")],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the rows that would be removed; write nothing.")
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for runs in progress.")
    ] = 60,
    requested_by: RequestedBy = None,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Remove a person's rows, from old versions too.

    They are removed from quarantine, firings, pairs, staging and reports, not from the landing
    table. No engine is started.
    """
    from strandline.pipeline.manage.erase import erase as erase_rows  # noqa: PLC0415
    from strandline.pipeline.manage.erase import erasure_of  # noqa: PLC0415

    require_reason(reason, "for the erasure")
    spec, root = at.spec(pipeline), at.root
    others = _notes_on_other_pipelines(spec, at)
    if dry_run:
        found = erasure_of(spec, root, where)
    else:
        found = erase_rows(spec, root, where, reason=reason, requested_by=requested_by, wait_s=wait)
    stays = [*_remaining_copies(found), *others]
    show.document({**found, "dry_run": dry_run, "stays": stays}, as_json=as_json, human=_erased)


def _remaining_copies(found: Mapping[str, Any]) -> list[str]:
    """The places that may still hold the rows, or from which they could come back."""
    stays = [
        "windows, completeness and the timeline are aggregates, and stay",
        "the landing table is not touched: as long as it holds these rows, a rebuild of their days "
        "brings them back; delete them there",
        "messages of failed runs (strandline runs) may name a value on which an expression fails",
        "the tables' logs name the least and the largest values of files for up to 30 days",
    ]
    stays += [
        f"rows of {name} stay: the table lacks a column of the condition"
        for name, rows in found["rows"].items()
        if rows is None
    ]
    return stays


def _notes_on_other_pipelines(spec: PipelineSpec, at: Places) -> list[str]:
    """Notes on other pipelines over the same landing tables, and on pipeline files with errors."""
    root = at.root
    of_this, others, unread = _landing_tables(spec, root), [], []
    for name, found in at.each(lambda other: _landing_tables(other, root)):
        if isinstance(found, StrandlineError):  # a wrong file is not this pipeline's trouble
            unread.append(name)
        elif name != spec.pipeline and of_this & found:
            others.append(name)
    notes = []
    if others:
        notes += [
            f"pipelines over the same landing table: {', '.join(others)}; erase the rows there, too"
        ]
    if unread:
        notes += [
            f"mistakes in the file of {', '.join(unread)}: it may read from the same landing table"
        ]
    return notes


def _landing_tables(spec: PipelineSpec, lake: Lake) -> set[str]:
    """The URIs or catalog names of the landing tables that a pipeline's records come from.

    A pipeline over results has those of the pipeline at the start of the chain.
    """
    from strandline.spec.chained import ResultsSpec  # noqa: PLC0415

    if isinstance(spec, ResultsSpec):
        return _landing_tables(spec.upstream, lake)
    names = spec.landing_tables
    return {name if lake.is_catalog_name(name) else lake.resolve(name) for name in names}


def _erased(found: Mapping[str, Any]) -> None:
    verb = "would be erased" if found["dry_run"] else "erased, with all old versions"
    if not any(found["rows"].values()):
        verb += "; no row of the newest version meets the condition"
    show.out.print(f"[bold]{escape(found['pipeline'])}[/]: {verb}")
    for name, rows in found["rows"].items():
        if rows is not None:
            show.out.print(f"{name}: {number_of(rows, 'row')}")
    runs = f": {escape(', '.join(found['staging']))}" if found["staging"] else ""
    show.out.print(f"staging of {number_of(len(found['staging']), 'run')}{runs}")
    show.out.print(f"reports and results of audits: {number_of(found['reports'], 'file')}")
    for one in found["stays"]:
        show.out.print(f"note: {escape(one)}")
