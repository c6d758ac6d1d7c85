"""read: rows of published tables at one run's state, printed or exported; without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len
from rich.measure import Measurement
from rich.table import Table

from strandline.cli import show
from strandline.cli.console import TextConsole, escape, plain_table
from strandline.cli.groups import Places
from strandline.cli.options import AsJson, Pipeline, asked_days, given_path
from strandline.errors import InputError
from strandline.visible import number_of, visible

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 20
_WIDEST = 100_000
"""A width in characters that no line of a table exceeds."""
_PADDED = 64
"""The width in characters up to which the values of a column are padded in a file or a pipe."""


@dataclass(frozen=True)
class _Rows:
    """The options that select rows of a table, and their destination."""

    run: Annotated[
        str | None, typer.Option(metavar="RUN", help="As this run has published them.")
    ] = None
    as_of_ledger: Annotated[
        int | None, typer.Option(metavar="N", help="As of this position of the ledger.")
    ] = None
    since: Annotated[str | None, typer.Option(metavar="DATE", help="First day. [all]")] = None
    until: Annotated[str | None, typer.Option(metavar="DATE", help="Last day. [all]")] = None
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Some columns, with commas between. [all]")
    ] = None
    limit: Annotated[
        int | None, typer.Option(min=0, help="At most so many rows. [20; all with --output]")
    ] = None
    output: Annotated[
        str | None,
        typer.Option(help="Write into a file: .parquet, .csv or .arrow. Its folder is made."),
    ] = None

    @property
    def file(self) -> Path | None:
        """The file for the rows; None if they are printed.

        Raises:
            InputError: there is no export for the file's suffix.
        """
        from strandline.lake.export import require_suffix  # noqa: PLC0415

        file = given_path("--output", self.output)
        if file is not None:
            require_suffix(file)
        return file

    @property
    def most(self) -> int | None:
        """The limit on the number of rows; None for all rows."""
        return _SHOWN if self.limit is None and self.output is None else self.limit

    @property
    def names(self) -> list[str] | None:
        """The names of the columns; None for all columns.

        Raises:
            InputError: one is empty.
        """
        if self.columns is None:
            return None
        names = [name.strip() for name in self.columns.split(",")]
        if not all(names):
            way_out = "give names with commas between, or leave --columns out"
            raise InputError(f"--columns {self.columns!r}", "an empty name", way_out)
        return names


def read(
    pipeline: Pipeline,
    table: Annotated[
        str, typer.Argument(help="windows, firings or pairs, quarantine, completeness, runs.")
    ],
    asked: _Rows,
    *,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Print or export the rows of a published table.

    All tables are read as one run left them together, whatever a later run is writing. Quarantine
    has, without --run and --as-of-ledger, the malformed rows observed since, too.
    """
    from strandline.lake.export import export  # noqa: PLC0415
    from strandline.lake.read import LEDGER, current_tables, published_tables  # noqa: PLC0415
    from strandline.lake.store.days import Days  # noqa: PLC0415

    file, days = asked.file, Days(**asked_days(asked.since, asked.until))
    if table == LEDGER and days != Days():
        raise InputError("--since, --until", f"{table} has no days", "leave them out")
    spec = at.spec(pipeline)
    is_newest = table == "quarantine" and asked.run is None and asked.as_of_ledger is None
    if is_newest:
        tables = current_tables(at.root, spec.pipeline)
    else:
        tables = published_tables(
            at.root, spec.pipeline, run=asked.run, as_of_ledger=asked.as_of_ledger
        )
    schema = tables.columns(table, asked.names)
    rows = _first(tables.batches(table, schema.names, days), asked.most)
    found: dict[str, Any] = {
        "pipeline": spec.pipeline,
        "table": table,
        "version": tables.versions[table],
        # malformed rows come between runs: no step of the ledger has just these
        "run_id": None if is_newest else tables.step.run_id,
        "ledger": None if is_newest else tables.step.position,
        "notice": tables.notice,
        "limit": asked.most,
    }
    if file is None:
        found["columns"] = schema.names
        found["rows"] = [_plain(row) for batch in rows for row in batch.to_pylist()]
    else:
        found |= {"output": str(file), "rows": export(file, schema, rows)}
    show.document(found, as_json=as_json, human=_printed)


def _first(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The first rows up to a limit; None for all rows."""
    left = limit
    for batch in batches:
        if left == 0:
            return
        part = batch if left is None else batch.slice(0, min(left, batch.num_rows))
        left = None if left is None else left - part.num_rows
        yield part


def _plain(value: Any) -> Any:
    """A value, or each of its parts; times as they would be typed, bytes in hexadecimal digits."""
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.hex().upper()  # as hex() of SQL
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    # an entry of a MAP is a tuple
    return type(value)(map(_plain, value)) if isinstance(value, list | tuple) else value


def _printed(found: Mapping[str, Any]) -> None:
    as_of = f"as of position {found['ledger']} of the ledger"
    where = f"version {found['version']}, {as_of if found['ledger'] is not None else 'the newest'}"
    show.out.print(f"[bold]{escape(found['pipeline'])}[/] {found['table']}: {where}")
    if found["notice"]:
        show.out.print(f"note: {escape(found['notice'])}")
    if "output" in found:
        show.out.print(f"{number_of(found['rows'], 'row')} in {escape(found['output'])}")
        return
    print_rows(found["columns"], found["rows"])
    shown = len(found["rows"])
    more = "; --limit shows more, --output writes all" if shown == found["limit"] else ""
    show.out.print(f"{number_of(shown, 'row')}{more}")


def print_rows(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each row, or a block of lines if the terminal is too narrow.

    A line printed into a file or a pipe has its full length.
    """
    lines = plain_table()
    for name in columns:
        lines.add_column(escape(name), no_wrap=True)
    for row in rows:
        lines.add_row(*(_cell(row[name]) for name in columns))
    width = Measurement.get(show.out, show.out.options.update(width=_WIDEST), lines).maximum
    if width <= show.out.width:
        show.out.print(lines)
        return
    if not show.out.is_terminal:
        texts = [columns, *([_text(row[name]) for name in columns] for row in rows)]
        console = TextConsole(file=show.out.file, highlight=False)
        for line in _lines([[visible(text) for text in of_row] for of_row in texts]):
            console.print(escape(line), soft_wrap=True)
        return
    for row in rows:
        block = Table(box=None, show_header=False, pad_edge=False)
        block.add_column()
        block.add_column(overflow="fold")
        for name in columns:
            block.add_row(f"[bold]{escape(name)}[/]", _cell(row[name]))
        show.out.print(block)
        show.out.print()


def _lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A line for each row, in columns; a value that is longer than most pads no other line."""
    widths = [min(max(map(cell_len, column)), _PADDED) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (
            text + " " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True)
        )
        yield "  ".join(padded).rstrip()


def _cell(value: Any) -> str:
    """The markup of a value."""
    return escape(_text(value))


def _text(value: Any) -> str:
    return "" if value is None else str(value)
