"""The stored timeline: reads of the table `timeline`, day by day."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import pandas as pd
import pyarrow.compute as pc
import pyarrow.dataset as ds

from strandline.engine.idleness.source import WatermarkSource
from strandline.engine.idleness.state import SourceState, StatusChange
from strandline.engine.idleness.steps import steps_from
from strandline.engine.timeline import (
    CHANNEL_COLUMNS,
    DAY_COLUMNS,
    MALFORMED_COLUMNS,
    CellQuery,
)
from strandline.engine.watermark.by_steps import KnownSteps, StepDays
from strandline.engine.whole_numbers import to_pandas
from strandline.lake.store.reads import rows_on_days
from strandline.lake.timeline.rows import TimelineTable, cells_wanted
from strandline.model.facts import DayFacts
from strandline.model.intervals import TimeRange

_STEP_COLUMNS = (
    "arrival_date",
    "first_arrival_ms",
    "first_sequence",
    "until_arrival_ms",
    "rank",
    "watermark_ms",
)


@dataclass(frozen=True)
class StoredTimeline:
    """The timeline of observed days in the table; see `Timeline`.

    Each call reads only the rows that it needs.

    Attributes:
        table: the open table.
        fingerprint: the fingerprint under which the days were observed.
        before_ms: only days that ended by this instant.
        without: days to ignore, since they are observed again.
    """

    table: TimelineTable
    fingerprint: str
    before_ms: int
    without: frozenset[date] = frozenset()

    @cached_property
    def channel_days(self) -> pd.DataFrame:
        """See `Timeline`."""
        return self._read("channel", CHANNEL_COLUMNS)

    @cached_property
    def day_map(self) -> pd.DataFrame:
        """See `Timeline`."""
        return self._read("day", DAY_COLUMNS).dropna(subset=["event_date"])

    @cached_property
    def malformed(self) -> pd.DataFrame:
        """See `Timeline`."""
        return self._read("malformed", MALFORMED_COLUMNS)

    def cells(self, asked: CellQuery) -> pd.DataFrame:
        """See `Timeline`."""
        return self._read("cell", asked.columns, cells_wanted(asked), asked.days)

    def _read(
        self,
        kind: str,
        names: Sequence[str],
        wanted: ds.Expression | None = None,
        days: Collection[date] | None = None,
    ) -> pd.DataFrame:
        if self.without:
            kept = ~rows_on_days("arrival_date", self.without)
            wanted = kept if wanted is None else wanted & kept
        rows = self.table.rows(
            kind, names, self.fingerprint, before_ms=self.before_ms, of_days=days, wanted=wanted
        )
        return to_pandas(rows)


def read_violations(table: TimelineTable, fingerprint: str, *, before_ms: int) -> int:
    """The violations of ascending order on the days observed before an instant."""
    rows = table.rows("channel", ["violations"], fingerprint, before_ms=before_ms)
    return pc.sum(rows["violations"]).as_py() or 0


def read_steps(
    table: TimelineTable, source: WatermarkSource, *, before_ms: int, under: str, name: str = ""
) -> KnownSteps:
    """The steps of the days observed before an instant, and the source's state after them.

    Args:
        table: the timeline.
        source: the source.
        before_ms: the instant.
        under: the fingerprint under which the days were observed.
        name: the source's side, if there are two, whose changes of status are read, too; empty: the
            only source.
    """
    carried = read_source(table, under, before_ms=before_ms, name=name)
    if carried is None or carried.until_ms is None:
        return KnownSteps.none(source)

    def read(days: Collection[date]) -> pd.DataFrame:
        rows = table.rows("step", _STEP_COLUMNS, under, of_days=days, wanted=_of(name))
        return steps_from(to_pandas(rows), source.axis)

    names = ["arrival_date", "until_arrival_ms", "watermark_ms"]
    rows = table.rows("source", names, under, before_ms=before_ms, wanted=_of(name))
    days = to_pandas(rows).rename(columns={"until_arrival_ms": "until_ms"})
    step_days = StepDays(days.sort_values("arrival_date", ignore_index=True), read)
    return KnownSteps(step_days, carried, _changes(table, under, before_ms, name) if name else ())


def _of(name: str) -> ds.Expression | None:
    """A condition for the rows of one of two sources; None for a single source."""
    return ds.field("channel") == name if name else None


def _changes(
    table: TimelineTable, fingerprint: str, before_ms: int, name: str
) -> tuple[StatusChange, ...]:
    """The changes of a source between idle and active, in order."""
    names = ["arrival_date", "source_state"]
    rows = table.rows("source", names, fingerprint, before_ms=before_ms, wanted=_of(name))
    states = rows.sort_by("arrival_date")["source_state"].to_pylist()
    return tuple(change for text in states for change in SourceState.from_json(text).changes)


def read_source(
    table: TimelineTable,
    fingerprint: str | None = None,
    *,
    before_ms: int | None = None,
    name: str = "",
) -> SourceState | None:
    """The source's state after the last day observed before an instant.

    None if its channels cannot go idle, or no day is observed. `fingerprint` None means any
    fingerprint; `name` is the source's side, if there are two.
    """
    of_source = _of(name)
    days = table.rows(
        "source", ["arrival_date"], fingerprint, before_ms=before_ms, wanted=of_source
    )
    last = pc.max(days["arrival_date"]).as_py()
    if last is None:
        return None
    rows = table.rows("source", ["source_state"], fingerprint, of_days=[last], wanted=of_source)
    return SourceState.from_json(rows["source_state"][0].as_py())


def channel_days(table: TimelineTable) -> pd.DataFrame:
    """Each channel's watermarks on each observed day: emitted by midnight, and pending."""
    names = ["channel", "arrival_date", "settled_ms", "pending_ms"]
    return to_pandas(table.rows("channel", names))


def read_facts(table: TimelineTable) -> dict[date, DayFacts]:
    """The facts of each day when it was observed, under any fingerprint."""
    names = ["arrival_date", "records", "files_digest", "landing_version", "landing_id"]
    return {
        row["arrival_date"]: DayFacts(
            row["records"],
            row["files_digest"],
            row["landing_version"],
            table_id=row["landing_id"],
        )
        for row in table.rows("landed", names).to_pylist()
    }


def read_event_times(
    table: TimelineTable, days: Collection[date] | None
) -> dict[date, list[TimeRange]]:
    """The observed event times of some days, as a range for each event date; None: all days."""
    names = ["arrival_date", "least_ts_ms", "largest_ts_ms", "records"]
    found = [
        row
        for kind in ("day", "lost")
        for row in table.rows(kind, names, of_days=days).to_pylist()
        if row["records"]
    ]
    times: dict[date, list[TimeRange]] = {}
    for row in found:
        event_times = TimeRange(row["least_ts_ms"], row["largest_ts_ms"] + 1)
        times.setdefault(row["arrival_date"], []).append(event_times)
    return times


def observed_days(table: TimelineTable) -> dict[str, set[date]]:
    """The observed days, by the fingerprint under which they were observed."""
    named = ["timeline_fingerprint", "arrival_date"]
    of_days = table.narrow.filter(ds.field("kind") == "day")
    days = of_days.group_by(named).aggregate([]).to_pylist()
    observed: dict[str, set[date]] = {}
    for row in days:
        observed.setdefault(row["timeline_fingerprint"], set()).add(row["arrival_date"])
    return observed
