"""Staging: what a run would publish, as plain Parquet, immutable once it is complete."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from strandline.lake.small_diff import staged_rows
from strandline.lake.store import Store


def temporary_folder(run_id: str) -> Path:
    """Where a dry run keeps what is too large for the memory; removed at its end."""
    return Path(tempfile.gettempdir()) / f"strandline-{run_id}"


@dataclass(frozen=True)
class Staging:
    """The staged parts of one run."""

    spark: SparkSession
    store: Store
    run_id: str

    def uri(self, part: str) -> str:
        """Where a part lies."""
        return f"{self.store.staging(self.run_id)}/{part}"

    def write(self, part: str, rows: DataFrame, *, more: bool = False) -> DataFrame:
        """Write a part whole, over whatever an earlier attempt left, and read it back.

        `more`: beside what this attempt has written of the part.
        """
        rows.write.mode("append" if more else "overwrite").parquet(self.uri(part))
        return self.read(part, rows.schema)

    def together(self, written: Sequence[DataFrame]) -> DataFrame:
        """A part that was written in several pieces: the last one was read back with all."""
        return written[-1]

    def read(self, part: str, schema: StructType | None = None) -> DataFrame:
        """A staged part; without its schema a job finds that."""
        reader = self.spark.read if schema is None else self.spark.read.schema(schema)
        return reader.parquet(self.uri(part))

    def folder(self, part: str) -> str:
        """Where a part lies that is read without Spark."""
        return self.uri(part)

    def small(self, part: str) -> pa.Table | None:
        """A staged part, without Spark; None: it is not small, or not in a folder."""
        return staged_rows(self.uri(part))

    def put(self, part: str, rows: pa.Table) -> DataFrame:
        """Write a small part whole, in a folder without Spark."""
        if self.store.lake.folder is None:
            return self.write(part, self.spark.createDataFrame(rows))
        folder = Path(unquote(urlparse(self.uri(part)).path))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pq.write_table(rows, folder / "part-0.parquet")
        return self.read(part, from_arrow_schema(rows.schema, prefer_timestamp_ntz=True))


class InMemory(Staging):
    """The staging of a dry run: nothing is written, parts live as long as the session."""

    def write(self, part: str, rows: DataFrame, *, more: bool = False) -> DataFrame:
        """Keep a part, or a piece of it, in the session's memory."""
        return rows.persist()

    def together(self, written: Sequence[DataFrame]) -> DataFrame:
        """A part that was kept in several pieces."""
        return reduce(DataFrame.unionByName, written)

    def folder(self, part: str) -> str:
        """What is too large for the memory lies in a folder of this machine while the run works."""
        return str(temporary_folder(self.run_id) / part)

    def small(self, part: str) -> pa.Table | None:
        """A part without Spark: none is."""
        return None

    def put(self, part: str, rows: pa.Table) -> DataFrame:
        """Keep a small part in the session's memory."""
        return self.spark.createDataFrame(rows)
