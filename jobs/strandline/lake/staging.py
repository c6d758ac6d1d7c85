"""Staging: what a run would publish, as plain Parquet, immutable once it is complete."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from strandline.lake.reads import emptied, files_at, parquet_files, rows_of
from strandline.lake.schema import arrow_of
from strandline.lake.sessions.protocol import session_of
from strandline.lake.store import Store


@dataclass(frozen=True)
class Staging:
    """The staged parts of one run."""

    spark: SparkSession
    store: Store
    run_id: str

    @property
    def root(self) -> str:
        """Where all parts lie."""
        return self.store.staging(self.run_id)

    def uri(self, part: str) -> str:
        """Where a part lies."""
        return f"{self.root}/{part}"

    def write(self, part: str, rows: DataFrame, *, piece: int = 0) -> DataFrame:
        """Write a part, or a piece of it, and read back all that is written of it.

        The first piece goes over whatever an earlier attempt left, the others beside it.
        """
        place = session_of(self.spark).to_write(self.uri(part))
        rows.write.mode("append" if piece else "overwrite").parquet(place)
        return self.read(part, rows.schema)

    def together(self, written: Sequence[DataFrame]) -> DataFrame:
        """A part that was written in several pieces: the last one was read back with all."""
        return written[-1]

    def read(self, part: str, schema: StructType) -> DataFrame:
        """A staged part, for the engine."""
        reader = self.spark.read.schema(schema)
        return session_of(self.spark).parquet(reader, self.uri(part))

    def beside(self, name: str) -> Staging:
        """A part of its own for what is staged of another source; it goes with the rest."""
        return replace(self, run_id=f"{self.run_id}/{name}")

    def drop(self) -> None:
        """Remove all of it, where it lies in a folder."""
        self.store.drop_staging(self.run_id)

    def part(
        self, name: str, schema: StructType | None = None, wanted: ds.Expression | None = None
    ) -> Part:
        """A staged part, for this process.

        Args:
            name: its name.
            schema: its columns; None: those of its files, of which there is one.
            wanted: of its rows these alone; None: all.

        Raises:
            OSError: its columns are asked for, and it has no file.
        """
        place = self.uri(name)
        schema = _columns_at(place) if schema is None else schema
        return Part(self, name, schema, wanted)

    def put(self, part: str, rows: Iterable[pa.Table], *, piece: int = 0) -> Part:
        """`write` of rows of this process, some of which come at a time, the first with columns."""
        stream = iter(rows)
        first = next(stream)
        files = files_at(self.uri(part)) if piece else emptied(self.uri(part))
        with (
            files.open_output_stream(f"part-{piece}.parquet") as out,
            pq.ParquetWriter(out, first.schema) as writer,
        ):
            writer.write_table(first)
            for some in stream:
                writer.write_table(some)
        return self.part(part, from_arrow_schema(first.schema, prefer_timestamp_ntz=True))


@dataclass(frozen=True)
class Part:
    """Rows that a run has staged: read when they are asked for, and without the engine.

    Attributes:
        staging: where they lie.
        name: of the part.
        schema: its columns.
        wanted: of its rows these alone; None: all.
        left_out: the files of the part whose rows are not read.
    """

    staging: Staging
    name: str
    schema: StructType
    wanted: ds.Expression | None = None
    left_out: frozenset[str] = frozenset()

    def rows(
        self, wanted: ds.Expression | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The rows, some at a time; see `rows_of`."""
        both = [one for one in (self.wanted, wanted) if one is not None]
        only = None if not both else both[0] if len(both) == 1 else both[0] & both[1]
        return rows_of(self._dataset, only, columns)

    def count(self) -> int:
        """How many rows there are."""
        return int(self._dataset.count_rows(filter=self.wanted))

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows at once."""
        return pa.concat_tables(self.rows(columns=columns))

    def frame(self) -> DataFrame:
        """The whole part, for the engine."""
        return self.staging.read(self.name, self.schema)

    @property
    def place(self) -> str:
        """Where its files lie."""
        return self.staging.uri(self.name)

    def files_of_one(self, column: str, types: pa.Schema) -> dict[str, Any]:
        """The files of which all rows are wanted and have one value in a column: with that value.

        Args:
            column: in which they have it.
            types: the part's columns are of these in the files, which have no others.
        """
        files, found = files_at(self.place), dict[str, Any]()
        own = [(name, types.field(name).type) for name in self.schema.names]
        for name in self._names:
            of_file = ds.dataset([name], format="parquet", filesystem=files)
            if [(field.name, field.type) for field in of_file.schema] != own:
                continue
            values = pc.unique(of_file.to_table(columns=[column])[column])
            if len(values) == 1 and of_file.count_rows(filter=self.wanted) == of_file.count_rows():
                found[name] = values[0].as_py()
        return found

    @property
    def _names(self) -> list[str]:
        there = parquet_files(files_at(self.place), "")
        return [name for name in there if name not in self.left_out]

    @property
    def _dataset(self) -> ds.Dataset:
        files, schema = files_at(self.place), arrow_of(self.schema)
        return ds.dataset(self._names, schema=schema, format="parquet", filesystem=files)


def _columns_at(place: str) -> StructType:
    files = files_at(place)
    first = next(iter(parquet_files(files, "")), None)
    if first is None:
        raise FileNotFoundError(f"{place}: no such file")
    schema = pq.read_schema(files.open_input_file(first))
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def passing(spark: SparkSession, store: Store, run_id: str) -> Staging:
    """The staging of a dry run, which is removed at its end.

    It lies in the lake only where executors on other machines would not see a folder of this one.
    """
    if session_of(spark).on_one_machine:
        return Temporary(spark, store, run_id, tempfile.mkdtemp(prefix="strandline-"))
    return Staging(spark, store, f"dry-{run_id}")


@dataclass(frozen=True)
class Temporary(Staging):
    """Staging in a folder of this machine.

    Attributes:
        folder: which this run has made.
    """

    folder: str

    @property
    def root(self) -> str:
        """Where all parts lie while the run works."""
        return f"{self.folder}/{self.run_id}"

    def drop(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)
