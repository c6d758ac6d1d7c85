"""test: the windows of a pipeline over sample rows, compared with the expected ones; no engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strandline.cli import show
from strandline.cli.console import escape, table
from strandline.cli.groups import Places
from strandline.cli.options import AsJson, Pipeline, given_path
from strandline.visible import number_of

if TYPE_CHECKING:
    from strandline.trial.run import Difference, Result

_FAILED = 3


def test(
    pipeline: Pipeline,
    *,
    file: Annotated[
        str | None,
        typer.Option(help="The test file. [NAME.test.yaml beside the pipeline file]"),
    ] = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Write the results into the file as expected rows; read them before you commit.",
        ),
    ] = False,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Test a pipeline on sample rows.

    The rows, and the windows that they must give, are in a file beside the pipeline's. The windows
    are computed record by record, without an engine and a lake. Exits with 3 if a row is missing,
    unexpected or different.
    """
    from strandline.spec.loading import TEST_SUFFIX, file_of, load_spec  # noqa: PLC0415
    from strandline.trial.file import read_test, updated  # noqa: PLC0415
    from strandline.trial.run import run_test  # noqa: PLC0415

    of_pipeline = file_of(at.folder, pipeline)
    place = given_path("--file", file) or of_pipeline.with_name(f"{of_pipeline.stem}{TEST_SUFFIX}")
    given = read_test(place)
    result = run_test(load_spec(of_pipeline), given)
    if update:
        place.write_text(updated(place, result.windows, result.quarantine), encoding="utf-8")
        show.document(
            {"pipeline": pipeline, "written": str(place)}, as_json=as_json, human=_written
        )
        return
    found = {
        "pipeline": pipeline,
        "rows": len(given.rows),
        "passed": not result.differences,
        "differences": [_as_json(one) for one in result.differences],
        "windows": [_plain(row) for row in result.windows],
        "quarantine": result.quarantine,
    }
    show.document(found, as_json=as_json, human=lambda _: _show(pipeline, len(given.rows), result))
    if result.differences:
        raise typer.Exit(_FAILED)


def _written(found: Mapping[str, Any]) -> None:
    """Print the place of an updated test file."""
    show.out.print(f"written: {escape(found['written'])}; read it before you commit it")


def _show(pipeline: str, rows: int, result: Result) -> None:
    """Print the outcome of a test, and its differences as a table."""
    windows, refused = number_of(len(result.windows), "window"), len(result.quarantine)
    counts = f"{number_of(rows, 'row')}, {windows}, {refused:,} refused"
    if not result.differences:
        show.out.print(f"[bold green]passed[/] {escape(pipeline)}: {counts}")
        return
    show.out.print(f"[bold red]failed[/] {escape(pipeline)}: {counts}")
    lines = table("row", "column", "expected", "actual", first="table")
    for one in result.differences:
        for column, expected, came in _cells(one):
            lines.add_row(one.table, _columns_in(one.row), column, expected, came)
    show.out.print(lines)


def _cells(one: Difference) -> Sequence[tuple[str, str, str]]:
    """A line for each differing column of a row; for a missing or unexpected row one line."""
    if one.what == "missing":
        return [("", "this row", "none")]
    if one.what == "unexpected":
        return [("", "none", "this row")]
    return [(escape(name), _text_of(a), _text_of(b)) for name, (a, b) in one.columns.items()]


def _columns_in(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{escape(name)} {_text_of(value)}" for name, value in row.items())


def _text_of(value: Any) -> str:
    return escape("null" if value is None else str(_plain_value(value)))


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def _as_json(one: Difference) -> dict[str, Any]:
    columns = {
        name: {"expected": _plain_value(a), "came": _plain_value(b)}
        for name, (a, b) in one.columns.items()
    }
    return {"table": one.table, "what": one.what, "row": _plain(one.row), "columns": columns}
