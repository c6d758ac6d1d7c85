"""A timeline of two inputs, whose channels are prefixed with the name of their input."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import pandas as pd
import pyarrow as pa

from strandline.engine.timeline import CellQuery, CombinedTimeline, Fresh, OverTimeline
from strandline.spec.pipeline import channel_of


@dataclass(frozen=True)
class OfInput(OverTimeline):
    """The part of a timeline of two inputs that belongs to one of them: see `Timeline`.

    The day map is of both inputs, so a day may be asked for on which this input has no record.

    Attributes:
        name: the name of the input.
    """

    name: str

    @cached_property
    def channel_days(self) -> pd.DataFrame:
        """See `Timeline`."""
        return self._own(self.timeline.channel_days)

    def cells(self, asked: CellQuery) -> pd.DataFrame:
        """See `Timeline`."""
        with_channel = list(dict.fromkeys([*asked.columns, "channel"]))
        cells = self.timeline.cells(replace(asked, columns=with_channel))
        return self._own(cells)[list(asked.columns)]

    def _own(self, rows: pd.DataFrame) -> pd.DataFrame:
        prefix = channel_of(self.name, "")
        own = rows[rows["channel"].astype("string").str.startswith(prefix).fillna(False)]
        return own.assign(channel=own["channel"].str.removeprefix(prefix))


@dataclass(frozen=True)
class FreshOfTwo(CombinedTimeline):
    """New observations of two inputs: see `Fresh`."""

    before: Fresh
    fresh: Fresh

    def tables_of(self, days: Collection[date]) -> Iterator[pa.Table]:
        """See `Fresh`; day by day."""
        for day in sorted(days):
            yield from self.before.tables_of([day])
            yield from self.fresh.tables_of([day])
