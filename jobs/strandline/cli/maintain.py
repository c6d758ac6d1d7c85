"""maintain: the upkeep that keeps the tables of a pipeline small over years; without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strandline.cli import show
from strandline.cli.console import escape, plain_table
from strandline.cli.groups import Places
from strandline.cli.json_document import failed
from strandline.cli.options import AsJson
from strandline.cli.progress import progress
from strandline.errors import InputError, StrandlineError
from strandline.pipeline.manage.retention import Retention
from strandline.visible import number_of

if TYPE_CHECKING:
    from strandline.lake.store.lake import Lake
    from strandline.spec import PipelineSpec


_MOST_DAYS = 36_500
"""The largest number of days: a hundred years. delta-rs panics at some millions of days."""


def _days(help_: str) -> Any:
    """An option with a number of days."""
    return typer.Option(min=1, max=_MOST_DAYS, help=help_)


@dataclass(frozen=True)
class _Kept(Retention):
    """The retention, as options."""

    keep_days: Annotated[int, _days("Days to keep old versions of tables.")] = Retention.keep_days
    staging_days: Annotated[
        int, _days("Days to keep staging of rejected, dead and prepared runs.")
    ] = Retention.staging_days
    report_days: Annotated[int, _days("Days to keep results of audits.")] = Retention.report_days
    ledger_days: Annotated[
        int, _days("Days to keep steps of ended runs; published ones always stay.")
    ] = Retention.ledger_days


def maintain(
    *,
    pipeline: Annotated[
        str | None, typer.Argument(help="The pipeline's name.", metavar="PIPELINE")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All pipelines that have run, one after the other.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the upkeep that is due; write nothing.")
    ] = False,
    kept: _Kept,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Compact small files, remove what is no longer needed.

    Shows the steps before it does them, then the sizes of the tables. No engine is started.
    """
    if (pipeline is None) is not every:
        raise InputError("maintain", "no pipeline, or too many", "give PIPELINE, or --all")
    if pipeline is not None:
        done = _maintained(at.spec(pipeline), at.root, kept, dry_run=dry_run)
        show.document(done, as_json=as_json, human=_measured)
        return
    results = _all_maintained(at, kept, dry_run=dry_run)
    show.document(results, as_json=as_json, human=_all_measured)
    for found in results:
        if "error" in found:
            raise typer.Exit(found["exit_code"])


def _all_maintained(at: Places, retention: Retention, *, dry_run: bool) -> list[dict[str, Any]]:
    """Maintain all pipelines that have run; the error of one does not stop the others."""
    root, results = at.root, list[dict[str, Any]]()

    def maintained(spec: PipelineSpec) -> dict[str, Any] | None:
        if root.pipeline(spec.pipeline).table("runs") is None:
            return None
        return _maintained(spec, root, retention, dry_run=dry_run)

    for name, found in at.each(maintained):
        if isinstance(found, StrandlineError):
            show.failure(found, as_json=False)
            results.append({"pipeline": name, **failed(found)})
        elif found is not None:
            results.append(found)
    return results


def _maintained(
    spec: PipelineSpec, lake: Lake, retention: Retention, *, dry_run: bool
) -> dict[str, Any]:
    """Maintain one pipeline; its planned steps and their result."""
    from strandline.pipeline.manage.maintain import maintain, upkeep_of  # noqa: PLC0415

    planned = upkeep_of(spec, lake, retention)
    if dry_run:
        return planned | {"dry_run": True, "after": None}
    _planned(planned)
    with progress(quiet=True) as step:
        done = maintain(spec, lake, retention, progress=step)
    return planned | {"dry_run": False, "after": done["tables"]}


def _all_measured(results: Sequence[Mapping[str, Any]]) -> None:
    if not results:
        show.out.print("nothing to maintain: no pipeline has run in this lake")
    for found in results:
        if "error" not in found:  # an error is on stderr
            _measured(found)


def _planned(found: Mapping[str, Any]) -> None:
    """Print the planned steps on stderr, before they are done."""
    with progress(quiet=True) as step:
        for line in _lines(found):
            step(f"{found['pipeline']}: {line}")


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The notice, and a line for each planned step."""
    if found["notice"]:
        yield f"{found['notice']}; published tables are left alone until then"
    for name, table in found["tables"].items():
        if table["days"]:
            yield f"{name}: compact the files of {number_of(table['days'], 'day')}"
        if table["unneeded"]["files"]:
            yield f"{name}: remove {_size(table['unneeded'])} that no kept version needs"
    if found["quarantine"]:
        rows = number_of(found["quarantine"], "row")
        yield f"quarantine: remove {rows} older than quarantine_days"
    if found["staging"]["runs"]:
        yield f"staging of {', '.join(found['staging']['runs'])}: remove {_size(found['staging'])}"
    if found["reports"]["files"]:
        yield f"results of old audits: remove {_size(found['reports'])}"
    if found["ledger"]:
        yield f"ledger: remove {number_of(found['ledger'], 'step')} of runs that ended long ago"


def _measured(found: Mapping[str, Any]) -> None:
    """Print the steps, and each table's files and bytes before and after."""
    verb = "would be maintained" if found["dry_run"] else "maintained"
    show.out.print(f"[bold]{escape(found['pipeline'])}[/]: {verb}")
    for line in _lines(found) if found["dry_run"] else ():
        show.out.print(escape(line))
    sizes = plain_table()
    edges = ("before",) if found["dry_run"] else ("before", "after")
    for column in ("table", *(f"{what} {edge}" for edge in edges for what in ("in use", "stored"))):
        sizes.add_column(column, justify="left" if column == "table" else "right")
    for name, before in found["tables"].items():
        measured = [before] if found["dry_run"] else [before, found["after"][name]]
        sizes.add_row(
            name, *(_size(one[what]) for one in measured for what in ("in_use", "stored"))
        )
    show.out.print(sizes)


def _size(of: Mapping[str, int]) -> str:
    return f"{number_of(of['files'], 'file')}, {of['bytes'] / 1e6:,.1f} MB"
