"""The two inputs of a join: the timeline and the history of each, and of both together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame

from strandline.engine.history.days_to_read import DaysToRead
from strandline.engine.history.history import History
from strandline.engine.position.axis import InputAxis
from strandline.engine.position.grid import WIDEST_MS
from strandline.engine.records.identity import SourceColumns
from strandline.engine.timeline import CellQuery, CombinedTimeline, Fresh, OverTimeline, Timeline
from strandline.engine.watermark.of_two import CrossingsOfTwo, InputCrossings
from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS, TimeRange
from strandline.spec.join import SIDES
from strandline.spec.joined import JoinedSpec
from strandline.spec.pipeline import channel_of


@dataclass(frozen=True)
class Input:
    """One of two inputs, with its history.

    Attributes:
        records: its landing as `read_records` reads it.
        source_columns: the landing table's own columns.
        history: everything observed of it below the horizon.
    """

    records: DataFrame
    source_columns: SourceColumns
    history: History


@dataclass(frozen=True, kw_only=True)
class HistoryOfTwo(History):
    """The history of an interval join: see `History`.

    Attributes:
        spec: the pipeline.
        crossings: when the watermark of both inputs reached thresholds.
        inputs: each input, by its name.
    """

    spec: JoinedSpec
    crossings: CrossingsOfTwo
    inputs: dict[str, Input]

    @classmethod
    def of(cls, timeline: Timeline, spec: JoinedSpec, inputs: dict[str, Input]) -> HistoryOfTwo:
        """The history of both inputs; `timeline` has the observations of both."""
        histories = [inputs[name].history for name in SIDES]
        left, right = InputAxis.of_two(*(history.axis for history in histories))
        both = zip(SIDES, histories, (left, right), strict=True)
        crossings = CrossingsOfTwo(
            {name: InputCrossings(one.crossings, axis) for name, one, axis in both}
        )
        return cls(
            spec=spec,
            axis=crossings.axis,
            timeline=timeline,
            crossings=crossings,
            inputs=inputs,
        )

    @property
    def of_sides(self) -> Mapping[str, History]:
        """See `History`."""
        return {name: one.history for name, one in self.inputs.items()}

    @cached_property
    def days(self) -> DaysToRead:
        """See `History`."""
        return _DaysOfPairs(self.timeline, self.spec)


@dataclass(frozen=True)
class _DaysOfPairs(DaysToRead):
    """See `DaysToRead`, for pairs by their later event time."""

    spec: JoinedSpec

    def of_windows(self, within: TimeRange) -> list[date]:
        """The arrival days that may have a record of a pair of a range."""
        return self.of_events(self.events_of(within))

    def events_of(self, within: TimeRange) -> TimeRange:
        """The event times of the records of a range's pairs."""
        return events_of_pairs(self.spec, within)

    def first_start_after(self, ts_ms: int) -> int:
        """The start of the first slot after every pair of a record with an event time."""
        end_ms = min(ts_ms + 1 + _longest_kept_ms(self.spec), END_OF_INSTANTS_MS)
        return end_ms + (self.grid.offset_ms - end_ms) % self.grid.step_ms


def events_of_pairs(spec: JoinedSpec, within: TimeRange) -> TimeRange:
    """The event times of the records of a range's pairs."""
    start_ms = max(within.start_ms - _longest_kept_ms(spec), LEAST_INSTANT_MS)
    return TimeRange(start_ms, within.end_ms)


def _longest_kept_ms(spec: JoinedSpec) -> int:
    """The longest time, in ms, from a record's event time to a later partner's, on either side."""
    return min(max(spec.kept_ms.values()), WIDEST_MS)


@dataclass(frozen=True)
class OfInput(OverTimeline):
    """The part of a timeline of two inputs that belongs to one of them: see `Timeline`.

    The day map has the days of both inputs, so this input may have no record on a queried day.

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
