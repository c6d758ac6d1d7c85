"""Staging: the rows that a run would publish, as Parquet files that do not change once written."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from strandline.lake.publish.arrow_diff import OP
from strandline.lake.sessions.protocol import session_of
from strandline.lake.store.reads import columns_in, emptied, files_at, parquet_files, rows_of
from strandline.lake.store.schema import arrow_of, with_marks
from strandline.lake.store.store import Store
from strandline.tables import INPUT


@dataclass(frozen=True)
class Staging:
    """The staged parts of one run.

    Attributes:
        folder: a folder of this machine that the run has created for them; None: they are in the
            lake.
        second_of: gives the names of the second columns of quarantine (`with_marks`).
    """

    spark: SparkSession
    store: Store
    run_id: str
    folder: str | None = None
    second_of: Callable[[], Mapping[str, str]] = dict

    @property
    def root(self) -> str:
        """The folder of all parts."""
        if self.folder is not None:
            return f"{self.folder}/{self.run_id}"
        return self.store.staging(self.run_id)

    def uri(self, part: str) -> str:
        """The folder of a part."""
        return f"{self.root}/{part}"

    def write(self, part: str, rows: DataFrame, *, piece: int = 0) -> Part:
        """Write a part, or a piece of it; the part with all its written rows.

        The first piece replaces the files of an earlier attempt, further pieces are added.
        """
        session, folder = session_of(self.spark), self.uri(part)
        rows.write.mode("append" if piece else "overwrite").parquet(session.to_write(folder))
        return self._part(part, session.columns_of(rows, folder))

    def beside(self, name: str) -> Staging:
        """The staging of another source, in a folder of this staging."""
        return replace(self, run_id=f"{self.run_id}/{name}")

    def drop(self) -> None:
        """Remove the staging."""
        if self.folder is None:
            self.store.drop_staging(self.run_id)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def part(self, name: str) -> Part:
        """A part that an earlier run has staged, with the columns of its files.

        Raises:
            OSError: the part has no file.
        """
        columns = columns_in(self.uri(name))
        if columns is None:
            raise FileNotFoundError(f"{self.uri(name)}: no such file")
        return self._part(name, from_arrow_schema(columns, prefer_timestamp_ntz=True))

    def _part(self, name: str, columns: StructType) -> Part:
        """A part whose columns have the marks of second columns; a diff has the table's own."""
        of_two = INPUT in columns.names and OP not in columns.names
        return Part(self, name, with_marks(columns, self.second_of() if of_two else {}))

    def put(self, part: str, rows: Iterable[pa.Table], *, piece: int = 0) -> Part:
        """Write a part from batches of this process; the first batch may be empty."""
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
        return Part(self, part, from_arrow_schema(first.schema, prefer_timestamp_ntz=True))


@dataclass(frozen=True)
class Part:
    """A staged part, which is read lazily and without an engine.

    Attributes:
        staging: the staging that contains it.
        name: the part's name.
        schema: its columns.
        wanted: a condition on its rows; None: all rows.
        left_out: files of the part that are not read.
    """

    staging: Staging
    name: str
    schema: StructType
    wanted: ds.Expression | None = None
    left_out: frozenset[str] = frozenset()

    def rows(
        self, wanted: ds.Expression | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The rows in batches; see `rows_of`."""
        both = [one for one in (self.wanted, wanted) if one is not None]
        only = None if not both else both[0] if len(both) == 1 else both[0] & both[1]
        return rows_of(self._dataset, only, columns)

    def count(self) -> int:
        """The number of rows."""
        return int(self._dataset.count_rows(filter=self.wanted))

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows as one table."""
        return pa.concat_tables(self.rows(columns=columns))

    def frame(self) -> DataFrame:
        """The whole part as a DataFrame."""
        spark = self.staging.spark
        return session_of(spark).parquet(spark.read.schema(self.schema), self.place)

    @property
    def place(self) -> str:
        """The folder of its files."""
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
        names = parquet_files(files_at(self.place))
        return [name for name in names if name not in self.left_out]

    @property
    def _dataset(self) -> ds.Dataset:
        files, schema = files_at(self.place), arrow_of(self.schema)
        return ds.dataset(self._names, schema=schema, format="parquet", filesystem=files)


def passing(spark: SparkSession, store: Store, run_id: str) -> Staging:
    """The staging of a dry run, which is removed at its end.

    It is in the lake only if executors on other machines do not see this machine's folders.
    """
    if session_of(spark).on_one_machine:
        return Staging(spark, store, run_id, tempfile.mkdtemp(prefix="strandline-"))
    return Staging(spark, store, f"dry-{run_id}")
