"""Staging: what a run would publish, as plain Parquet, immutable once it is complete."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from strandline.engine.frames import from_arrow
from strandline.lake.places import path_of
from strandline.lake.sessions.protocol import session_of
from strandline.lake.small_diff import staged_rows
from strandline.lake.store import Store


@dataclass(frozen=True)
class Staging:
    """The staged parts of one run."""

    spark: SparkSession
    store: Store
    run_id: str

    def uri(self, part: str) -> str:
        """Where a part lies."""
        return f"{self.store.staging(self.run_id)}/{part}"

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

    def read(self, part: str, schema: StructType | None = None) -> DataFrame:
        """A staged part; without its schema a job finds that."""
        reader = self.spark.read if schema is None else self.spark.read.schema(schema)
        return session_of(self.spark).parquet(reader, self.uri(part))

    def beside(self, name: str) -> Staging:
        """A part of its own for what is staged of another source; it goes with the rest."""
        return replace(self, run_id=f"{self.run_id}/{name}")

    def drop(self) -> None:
        """Remove all of it, where it lies in a folder."""
        self.store.drop_staging(self.run_id)

    def small(self, part: str) -> pa.Table | None:
        """A staged part, without Spark; None: it is not small, or not in a folder."""
        return staged_rows(self.uri(part))

    def put(self, part: str, rows: pa.Table, *, piece: int = 0) -> DataFrame:
        """`write` of a few rows, in a folder without Spark."""
        folder = path_of(self.uri(part))
        if folder is None:
            return self.write(part, from_arrow(self.spark, rows), piece=piece)
        if not piece:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, folder / f"part-{piece}.parquet")
        return self.read(part, from_arrow_schema(rows.schema, prefer_timestamp_ntz=True))


def passing(spark: SparkSession, store: Store, run_id: str) -> Staging:
    """The staging of a dry run, which is removed at its end.

    It lies in the lake only where executors on other machines would not see a folder of this one.
    """
    if session_of(spark).on_one_machine:
        return Temporary(spark, store, run_id, tempfile.mkdtemp(prefix="strandline-"))
    return Staging(spark, store, f"dry-{run_id}")


@dataclass(frozen=True)
class Temporary(Staging):
    """Staging in a folder of this machine: what is small in it is handled without Spark.

    Attributes:
        root: the folder, which this run has made.
    """

    root: str

    def uri(self, part: str) -> str:
        """Where a part lies while the run works."""
        return f"{self.root}/{self.run_id}/{part}"

    def drop(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.root, ignore_errors=True)
