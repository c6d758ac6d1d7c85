"""status: up to where each pipeline is processed, and what its audits have found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import starmap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strandline.cli import show
from strandline.cli.console import escape, table
from strandline.cli.groups import Places
from strandline.cli.options import AsJson, Since, Until, asked_days
from strandline.errors import (
    AuditFailedError,
    InputError,
    NoRunsError,
    StrandlineError,
)
from strandline.model.intervals import instant_of

if TYPE_CHECKING:
    from pathlib import Path

    from strandline.lake.store.lake import Lake


def status(
    *,
    pipeline: Annotated[
        str | None, typer.Argument(help="The pipeline's name; none: a line for each.")
    ] = None,
    since: Since = None,
    until: Until = None,
    deep: Annotated[
        bool,
        typer.Option(
            help="Read all of the tables, and compare them with each other; exit with 3 if "
            "something is critical."
        ),
    ] = False,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Show what is processed, open, late and malformed.

    Counts are of the last 90 days, or of --since and --until. No engine is started. It exits with
    0 whatever it shows of the runs of a lake, and with 2 if there are none; with --deep, with 3 if
    a finding is critical.
    """
    from strandline.pipeline.views.status import status_of  # noqa: PLC0415

    days, root = asked_days(since, until), at.root
    now_ms = instant_of(datetime.now(UTC))
    if pipeline is not None:
        spec = at.spec(pipeline)
        found = status_of(spec, root, **days, now_ms=now_ms, deep=deep)
        show.document(found, as_json=as_json, human=show.status)
        _exit_by([_code_of(found)], deep=deep)
        return
    if days != asked_days(None, None) and not as_json:
        raise InputError(
            "--since, --until",
            "a line for each pipeline has no counts of days",
            "name a pipeline, or leave them out",
        )
    every = [*at.each(lambda spec: status_of(spec, root, **days, now_ms=now_ms, deep=deep))]
    if not every:
        raise InputError("--pipelines", f"{at.folder}/ has no pipeline files", "name a folder")
    lines, codes = zip(*starmap(_line_and_code, every), strict=True)
    show.document(lines, as_json=as_json, human=_line_each)
    if not as_json:
        _print_missing(root)
        _print_without_file(root, at.folder, {found["pipeline"] for found in lines})
    has_status = any(not isinstance(found, StrandlineError) for _, found in every)
    if not has_status and not _in_lake(root):
        raise typer.Exit(InputError.exit_code)
    _exit_by(codes, deep=deep)


def _line_and_code(
    name: str, found: Mapping[str, Any] | StrandlineError
) -> tuple[Mapping[str, Any], int]:
    """The status of one of several pipelines, or a line with its error; and its exit code."""
    if not isinstance(found, StrandlineError):
        return found, _code_of(found)
    has_not_run = isinstance(found, NoRunsError)  # a line has no room for the way out
    state = f"{found.place}: {found.problem}" if has_not_run else str(found)
    line = {"pipeline": name, "state": state, "processed_up_to": None}
    return line, 0 if has_not_run else found.exit_code


def _print_missing(lake: Lake) -> None:
    """Print that a lake is a folder that does not exist."""
    if lake.folder is not None and not lake.folder.exists():
        show.out.print(
            f"note: there is no folder {escape(lake.root)}; the first run makes it, or name "
            "another lake (--lake)"
        )


def _print_without_file(lake: Lake, folder: Path, known: Collection[str]) -> None:
    """Print the names of pipelines that have run in a lake, and have no file in the folder."""
    without = sorted(_in_lake(lake).difference(known))
    if without:
        names = escape(", ".join(without))
        which = "that name" if len(without) == 1 else "these names"
        place = escape(str(folder))
        show.out.print(f"note: the lake has tables of {names}, and {place}/ no file of {which}")


def _in_lake(lake: Lake) -> set[str]:
    """The pipelines that have run in a lake; of an object store, whose listing is slow, none."""
    logs = [] if lake.folder is None else lake.folder.glob("*/runs/_delta_log")
    folders = (log.parents[1] for log in logs)  # a landing table may be called runs, too
    return {folder.name for folder in folders if (folder / "timeline" / "_delta_log").is_dir()}


def _code_of(found: Mapping[str, Any]) -> int:
    """The exit code of a status with --deep: 3 if a finding is critical, else 0."""
    critical = any(finding["severity"] == "critical" for finding in found["findings"])
    return AuditFailedError.exit_code if critical else 0


def _exit_by(codes: Sequence[int], *, deep: bool) -> None:
    """Exit with the largest code of the pipelines; without --deep always with 0."""
    failed = AuditFailedError.exit_code
    if deep and any(codes):
        raise typer.Exit(failed if failed in codes else max(codes))


def _line_each(lines: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each pipeline with its progress and state."""
    lines_table = table("processed up to", "state", first="pipeline")
    for found in lines:
        processed = found["processed_up_to"] or "–"
        lines_table.add_row(escape(found["pipeline"]), processed, escape(found["state"]))
    show.out.print(lines_table)
