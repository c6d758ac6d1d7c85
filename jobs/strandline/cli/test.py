"""test: the windows of a pipeline over sample rows, compared with the expected ones; no engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from strandline.cli import show
from strandline.cli.console import escape, table
from strandline.cli.groups import Places
from strandline.cli.options import AsJson, Pipeline, given_path
from strandline.visible import number_of

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
    found = {"pipeline": pipeline, "rows": len(given.rows), **result.to_json()}
    show.document(found, as_json=as_json, human=_show)
    if result.differences:
        raise typer.Exit(_FAILED)


def _written(found: Mapping[str, Any]) -> None:
    """Print the place of an updated test file."""
    show.out.print(f"written: {escape(found['written'])}; read it before you commit it")


def _show(found: Mapping[str, Any]) -> None:
    """Print the outcome of a test, and its differences as a table."""
    rows, windows = number_of(found["rows"], "row"), number_of(len(found["windows"]), "window")
    counts = f"{escape(found['pipeline'])}: {rows}, {windows}, {len(found['quarantine']):,} refused"
    if found["passed"]:
        show.out.print(f"[bold green]passed[/] {counts}")
        return
    show.out.print(f"[bold red]failed[/] {counts}")
    lines = table("row", "column", "expected", "actual", first="table")
    for one in found["differences"]:
        row = ", ".join(f"{escape(name)} {_text_of(value)}" for name, value in one["row"].items())
        for cells in _cells(one):
            lines.add_row(one["table"], row, *cells)
    show.out.print(lines)


def _cells(one: Mapping[str, Any]) -> Sequence[tuple[str, str, str]]:
    """A line for each differing column of a row; for a missing or unexpected row one line."""
    if one["what"] == "missing":
        return [("", "this row", "none")]
    if one["what"] == "unexpected":
        return [("", "none", "this row")]
    return [
        (escape(name), _text_of(both["expected"]), _text_of(both["came"]))
        for name, both in one["columns"].items()
    ]


def _text_of(value: Any) -> str:
    return escape("null" if value is None else str(value))
