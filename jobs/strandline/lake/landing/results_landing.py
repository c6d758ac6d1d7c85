"""The landing of a pipeline over results: the last published results of the other pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from hashlib import sha256

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.position.axis import Axis
from strandline.engine.records.days import on_days
from strandline.engine.records.read import read_records
from strandline.engine.records.results import results_of
from strandline.errors import InputError
from strandline.lake.landing.landing import Landing
from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.results_log import ResultsLog
from strandline.lake.landing.table_landing import TableLanding
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.store import Store
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import read_facts
from strandline.model.facts import DayFacts, KnownDays, LandedDays, LandingChanges
from strandline.model.facts_of_two import content_of, id_of_two
from strandline.model.intervals import DAY_MS, datetime_of, known_text_of, midnight_of
from strandline.spec.chained import ResultsSpec


@dataclass(frozen=True, kw_only=True)
class ResultsLanding(TableLanding):
    """The results of another pipeline, with the day of their firing as arrival day.

    Attributes:
        spec: the pipeline.
        log: the log of the results.
        upstream: the other pipeline's landing at their publication.
    """

    spec: ResultsSpec
    log: ResultsLog
    upstream: Landing

    def by_log(self, log: LandingLog) -> ResultsLanding:
        """See `Landing.by_log`; with the other pipeline's landing at that publication.

        Raises:
            TypeError: it is not a log of results.
        """
        if not isinstance(log, ResultsLog):
            msg = f"{self.spec.pipeline} reads results"
            raise TypeError(msg)
        upstream = self.upstream.by_log(log.source_log(self.upstream.log))
        return replace(self, log=log, upstream=upstream)

    @property
    def upstream_store(self) -> Store:
        """The tables of the other pipeline."""
        return self.log.tables.store.lake.pipeline(self.spec.upstream.pipeline)

    @cached_property
    def frame(self) -> DataFrame:
        """The results of the other pipeline as landing rows."""
        tables = self.log.tables
        firings, windows = (tables.frame(self.spark, name) for name in ("firings", "windows"))
        return results_of(firings, windows, self.spec)

    @property
    def ready_ms(self) -> int:
        """See `Landing.ready_ms`; at most the midnight up to which the other has published."""
        return min(super().ready_ms, self.log.known_until_ms)

    @cached_property
    def facts(self) -> dict[date | None, DayFacts]:
        """See `Landing.facts`; they combine a day's results with the rows of the other landing.

        These rows decide the watermark. For days whose rows have been removed since, as by
        retention, the facts are as the other pipeline has observed them.
        """
        fired, before = super().facts, {**self.upstream.facts, **self._facts_of_removed}
        days = {*fired, *(day for day in before if day is not None)}
        return {day: self._facts_of(fired.get(day), before.get(day)) for day in days}

    @property
    def _facts_of_removed(self) -> dict[date | None, DayFacts]:
        """The facts that the other pipeline has observed, of days whose rows have been removed.

        The other pipeline's timeline still has these days. Removed results do not count any more.
        """
        if isinstance(self.upstream, ResultsLanding):
            return {}
        kept, now = read_facts(TimelineTable.open(self.upstream_store)), self.upstream.facts

        def is_another(facts: DayFacts) -> bool:
            return facts.table_id not in {None, self.upstream.table_id}

        return {
            day: facts
            for day, facts in kept.items()
            if (is_another(facts) or facts.landing_version <= self.upstream.version)
            and facts.has_more_than(now.get(day))
        }

    def _facts_of(self, fired: DayFacts | None, before: DayFacts | None) -> DayFacts:
        parts = (content_of(facts) if facts else "" for facts in (fired, before))
        digest = sha256("|".join(parts).encode()).hexdigest()[:32]
        return DayFacts(fired.rows if fired else 0, digest, self.version, table_id=self.table_id)

    @property
    def table_id(self) -> str:
        """See `Landing.table_id`; with the id of the other pipeline's landing table."""
        return id_of_two(self.log.table_id, self.upstream.table_id)

    @property
    def landed_days(self) -> LandedDays:
        """See `TableLanding`; by the files of the other pipeline's landing."""
        return LandedDays(self.begun)

    def records(self, days: Sequence[date | None] | None = None) -> DataFrame:
        """See `Landing.records`."""
        named = [day for day in days or () if day is not None]
        if not named or len(named) >= len(self.every_day):
            return super().records(days)
        first_ms, end_ms = midnight_of(min(named)), midnight_of(max(named)) + DAY_MS
        since, until = (F.lit(datetime_of(ms)) for ms in (first_ms, end_ms))
        near = self.frame.where((F.col("fired_at") >= since) & (F.col("fired_at") < until))
        return on_days(read_records(near, self.spec), days or (), self.every_day)

    def axis(self, state: PipelineState) -> Axis:
        """See `Landing.axis`; with the clock of the other pipeline."""
        return self.upstream.axis(self.log.state)

    def changes(self, known: KnownDays) -> LandingChanges:
        """See `Landing.changes`; a result that does not exist any more is not a missing row.

        `first_id` is ignored, since these facts are of more than one table.
        """
        return super().changes(replace(known, first_id=None)).without_losses

    @property
    def recomputes_changes(self) -> bool:
        """See `Landing`; False if a changed result only changes its own slots."""
        return not self.spec.by_slots

    def horizon(self, axis: Axis, as_of_ms: int | None, known_ms: int | None) -> int:
        """See `Landing.horizon`; by default the horizon of the other pipeline's publication.

        Raises:
            InputError: the other pipeline is not published up to the requested horizon.
        """
        results_ms = self.log.horizon_ms
        if as_of_ms is not None and as_of_ms > results_ms:
            upstream = self.spec.upstream.pipeline
            problem = f"{upstream} is published up to {known_text_of(results_ms)} alone"
            raise InputError(
                "--as-of", problem, f"run {upstream} first, or name an earlier instant"
            )
        return results_ms if as_of_ms is None else as_of_ms
