"""Staging: what a run would publish, as plain Parquet, immutable once it is complete."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

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

    def write(self, part: str, rows: DataFrame) -> DataFrame:
        """Write a part whole, over whatever an earlier attempt left, and read it back."""
        rows.write.mode("overwrite").parquet(self.uri(part))
        return self.spark.read.schema(rows.schema).parquet(self.uri(part))

    def read(self, part: str) -> DataFrame:
        """A staged part."""
        return self.spark.read.parquet(self.uri(part))

    def has(self, part: str) -> bool:
        """Whether a part has been written to its end."""
        try:
            self.read(part)
        except AnalysisException:
            return False
        return True


class InMemory(Staging):
    """The staging of a dry run: nothing is written, parts live as long as the session."""

    def write(self, part: str, rows: DataFrame) -> DataFrame:
        """Keep a part in the session's memory."""
        return rows.persist()

    def has(self, part: str) -> bool:
        """Whether there is a part from before: never."""
        return False
