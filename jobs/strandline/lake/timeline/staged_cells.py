"""The cells of many days, which executors write into staging and the driver reads in slices."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from strandline.engine.frames import collected
from strandline.engine.timeline import CELL_COLUMNS, CellQuery, Observed
from strandline.engine.watermark import cell_facts
from strandline.engine.whole_numbers import to_pandas
from strandline.lake.publish.staging import Staging
from strandline.lake.sessions.protocol import session_of
from strandline.lake.store.reads import files_at, parquet_files, rows_on_days
from strandline.lake.timeline.rows import SCHEMA, cells_wanted

CELLS = "cells"
"""The name of the staged part with the cells."""
_BY_DAY = ds.partitioning(pa.schema([("arrival_date", pa.date32())]), flavor="hive")


@dataclass(frozen=True)
class StagedCells:
    """The observation of some days, with its cells in staged files: see `Timeline`."""

    channel_days: pd.DataFrame
    day_map: pd.DataFrame
    malformed: pd.DataFrame
    files: ds.Dataset

    @classmethod
    def written(cls, cells: DataFrame, staging: Staging, *, at_hand: int) -> StagedCells | Observed:
        """Stage cells as `observe` counts them, sorted by slot and threshold within each day.

        At most `at_hand` cells are read back, so that the driver computes the facts of their days;
        for more cells Spark computes them by three jobs.
        """
        folder, session = staging.uri(CELLS), session_of(staging.spark)
        (
            cells.repartition("arrival_date")
            .sortWithinPartitions("arrival_date", "slot_ms", "threshold_ms")
            .write.mode("overwrite")
            .partitionBy("arrival_date")
            .parquet(session.to_write(folder))
        )
        schema = pa.schema([SCHEMA.field(name) for name in CELL_COLUMNS])
        filesystem = files_at(folder)
        names = [*parquet_files(filesystem)]
        files = ds.dataset(
            names, schema=schema, format="parquet", filesystem=filesystem, partitioning=_BY_DAY
        )
        if files.count_rows() <= at_hand:
            return Observed(to_pandas(files.to_table(columns=[*CELL_COLUMNS])))
        staged = session.parquet(staging.spark.read.schema(cells.schema), folder)
        return cls(
            collected(cell_facts.channel_days(staged)),
            collected(cell_facts.day_map(staged)),
            collected(cell_facts.malformed(staged)),
            files,
        )

    def cells(self, asked: CellQuery) -> pd.DataFrame:
        """See `Timeline`."""
        wanted = cells_wanted(asked) & rows_on_days("arrival_date", asked.days)
        return to_pandas(self.files.to_table(columns=list(asked.columns), filter=wanted))

    def tables_of(self, days: Collection[date]) -> Iterator[pa.Table]:
        """See `Fresh`; a table for each batch of a file."""
        for day in sorted(days):
            of_day = ds.field("arrival_date") == pa.scalar(day, pa.date32())
            for batch in self.files.to_batches(columns=[*CELL_COLUMNS], filter=of_day):
                yield pa.table(batch)
