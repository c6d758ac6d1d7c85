"""The present data of arrival days and slots about which audits of earlier runs had findings.

Only small tables are read, and only when a run has found something about them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import pandas as pd
import pyarrow.dataset as ds

from strandline.engine.position.grid import Grid
from strandline.engine.timeline import MALFORMED_COLUMNS
from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry, rows_without_day
from strandline.lake.store.days import Days, read_days
from strandline.lake.store.reads import files_at, parquet_files
from strandline.lake.timeline.rows import TimelineTable
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange, day_of, merged, midnight_of
from strandline.pipeline.request.request import arrival_days
from strandline.pipeline.views.calendar_rows import rows_on
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.quality.audit.wording import Gaps
from strandline.quality.completeness import in_ms, slots_outside
from strandline.quality.findings.check import BY_QUALITY, Check, Finding
from strandline.quality.findings.malformed import (
    RowsOfDay,
    checks_of_malformed,
    dateless_rows,
    rows_of_days,
)
from strandline.quality.findings.volume import check_of_volume, first_compared

_GAP = ("slot_start", "slot_end", "slots")
_MOST_RANGES = 10_000
"""The largest number of ranges of acknowledged gaps in one step of the ledger."""


@dataclass(frozen=True)
class AuditedData(ReadPipeline):
    """The rows of arrival days and the gaps that a pipeline has now."""

    @property
    def rules(self) -> Mapping[str, Callable[[Entry], Iterator[Check]]]:
        """The rules about the arrival days of a scheduled run, by their names below `quality`."""
        return {"max_malformed_share": self._of_malformed, "volume": self._of_volume}

    def findings_now(self, rule: str, run: Entry) -> Iterator[Finding]:
        """The findings that a rule has about a run's arrival days if it is applied now.

        Args:
            rule: one of `rules`.
            run: the published step of a scheduled run.
        """
        for check in self.rules[rule](run):
            if not check.success:
                yield Finding(rule, check.severity, check.sentence, run.run_id, check.every)

    def gaps(self, runs: Sequence[Entry]) -> Finding | None:
        """The slots without records on the days of some runs; None: there is none.

        Acknowledged gaps are left out. The finding names the last of the runs.

        Args:
            runs: the published steps of runs that have found gaps, the oldest first.
        """
        severity = BY_QUALITY[self.spec.quality.gaps]
        if severity is None or not runs:
            return None
        ranges = [run.range or EVERYTHING for run in runs]
        first_ms, end_ms = min(one.start_ms for one in ranges), max(one.end_ms for one in ranges)
        gaps = self._gaps_on(Days(day_of(first_ms), day_of(end_ms - 1)))
        unknown = slots_outside(gaps, self.state.known_gaps)
        if unknown.empty:
            return None
        figures = Gaps.of(unknown, self._not_acknowledged(unknown))
        return Finding("gaps", severity, str(figures), runs[-1].run_id)

    def _not_acknowledged(self, rows: pd.DataFrame) -> int:
        """The number of slots in some rows of gaps that lie whole in no acknowledged range."""
        grid, count = Grid.of(self.spec), 0
        edges = (in_ms(rows[name]) for name in ("slot_start", "slot_end"))
        for start_ms, end_ms, slots in zip(*edges, rows["slots"].fillna(1), strict=True):
            shared = map(TimeRange(start_ms, end_ms).shared_with, self.state.known_gaps)
            known = sum(len(grid.ids_inside(one)) for one in shared if one is not None)
            count += int(slots) - known
        return count

    def ranges_of_gaps(self, rejected: Iterable[str]) -> list[TimeRange]:
        """The ranges of all listed gaps, in ascending order.

        Args:
            rejected: the runs whose gaps are still staged.

        Raises:
            InputError: there are more ranges than a step of the ledger keeps.
        """
        found = merged(
            TimeRange(int(start_ms), int(end_ms))
            for gaps in (self._gaps_on(Days()), *map(self._staged_gaps, rejected))
            for start_ms, end_ms in zip(
                in_ms(gaps["slot_start"]), in_ms(gaps["slot_end"]), strict=True
            )
        )
        if len(found) > _MOST_RANGES:
            raise InputError(
                f"{self.spec.pipeline} finding gaps",
                f"its slots without records are {len(found):,} separate ranges; "
                f"at most {_MOST_RANGES:,} can be acknowledged",
                "write quality: {gaps: allow} into the file if slots without records are usual",
            )
        return found

    def _gaps_on(self, days: Days) -> pd.DataFrame:
        """The rows of gaps on some days."""
        rows = rows_on(self.spec, self.store, _GAP, days, wanted=ds.field("gap"))
        found: pd.DataFrame = pd.DataFrame(columns=[*_GAP]) if rows is None else rows.to_pandas()
        return found

    def _staged_gaps(self, run_id: str) -> pd.DataFrame:
        """The rows of gaps that a run has staged; none if its staging is removed."""
        files = files_at(f"{self.store.staging(run_id)}/completeness")
        names = [*parquet_files(files)]
        if not names:
            return pd.DataFrame(columns=[*_GAP])
        staged = ds.dataset(names, format="parquet", filesystem=files)
        found: pd.DataFrame = staged.to_table(columns=[*_GAP], filter=ds.field("gap")).to_pandas()
        return found

    def _of_malformed(self, run: Entry) -> Iterator[Check]:
        days = self._days_of(run)
        new = max(rows_without_day([run]) - rows_without_day(self._published_before(run)), 0)
        # the timeline has arrival days alone
        dateless = dateless_rows(self._without_day, new) if new else RowsOfDay()
        yield from checks_of_malformed(self.spec.quality, self._rows_for(days), days, dateless)

    def _of_volume(self, run: Entry) -> Iterator[Check]:
        end_ms = run.requested_until_ms
        over = [day for day in self._days_of(run) if midnight_of(day) + DAY_MS <= end_ms]
        records = {day: of_day.well_formed for day, of_day in self._rows_for(over).items()}
        check = check_of_volume(self.spec.quality.volume, records, over)
        if check is not None:
            yield check

    def _days_of(self, run: Entry) -> list[date]:
        """The arrival days that a scheduled run's audit was about, see `RunArrivals.days`."""
        before = self._published_before(run)
        reached_ms = before[-1].frontier_ms if before else None
        changed = run.settled or ()
        return arrival_days(run.requested_until_ms, reached_ms, self._known_days, changed)

    def _published_before(self, run: Entry) -> Sequence[Entry]:
        published = self.state.published
        return published[: bisect_left(published, run.position, key=lambda step: step.position)]

    def _rows_for(self, days: Sequence[date]) -> Mapping[date, RowsOfDay]:
        """The rows from eight weeks before the first of some days to the last one."""
        if not days:
            return {}
        known = self._known_days
        first, end = bisect_left(known, first_compared(days[0])), bisect_right(known, days[-1])
        return {day: self._rows[day] for day in known[first:end]}

    @cached_property
    def _known_days(self) -> list[date]:
        return sorted(self._rows)

    @cached_property
    def _rows(self) -> Mapping[date, RowsOfDay]:
        """The observed rows of each arrival day."""
        return rows_by_day(TimelineTable.open(self.store))

    @cached_property
    def _without_day(self) -> pd.DataFrame:
        """The quarantined rows without an arrival day, by reason."""
        is_dateless = ds.field("quarantine_date").is_null()
        rows = read_days(self.store, "quarantine", ["reason"], Days(), is_dateless)
        reasons = [] if rows is None else rows["reason"].to_pylist()
        return pd.DataFrame({"arrival_date": None, "reason": reasons, "records": 1})


def rows_by_day(timeline: TimelineTable) -> dict[date, RowsOfDay]:
    """The observed rows of each arrival day of a timeline."""
    records = timeline.rows("day", ["arrival_date", "event_date", "records"]).to_pandas()
    malformed = timeline.rows("malformed", MALFORMED_COLUMNS).to_pandas()
    return rows_of_days(records.dropna(subset=["event_date"]), malformed)
