"""Computes what each bound and allowed lateness would lose and cost; nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.frames import collected
from strandline.engine.history.history import History
from strandline.engine.losses.losses import DAY, Losses, WorstParts, losses_of
from strandline.engine.losses.reached import Offer, Reached, observe_without_bound, reached
from strandline.engine.position.axis import Axis
from strandline.engine.position.grid import Grid
from strandline.engine.timeline import CellQuery
from strandline.errors import InputError
from strandline.lake.landing.landing import Landing
from strandline.lake.landing.open_landing import open_landing
from strandline.lake.sessions.settings import for_input_of
from strandline.lake.store.lake import Lake
from strandline.model.intervals import DAY_MS, EVERYTHING, midnight_of
from strandline.model.loss_curve import LossCurve, totals_on_offer, unit_of
from strandline.pipeline.advise.advice import Advice, ClocksAhead, Question, delays_of
from strandline.pipeline.observe.observation import known_rows
from strandline.pipeline.request.ask_engine import require_all_expressions
from strandline.pipeline.request.context import Progress
from strandline.pipeline.request.failures import failures_recorded
from strandline.pipeline.request.opened import OpenedLog
from strandline.quality.advisable import why_not_advisable
from strandline.spec.pipeline import PipelineSpec

_MOST_PARTS = 20
_MOST_DAYS = 5
_AHEAD = "ahead_of_arrival"
_AHEAD_MS = 3_600_000
"""The default limit for clocks ahead, in ms."""


def require_advisable(spec: PipelineSpec) -> None:
    """Refuse a pipeline whose losses for every setting cannot be counted in one pass.

    Raises:
        InputError: it is one of those of `why_not_advisable`.
    """
    refused = why_not_advisable(spec)
    if refused is not None:
        raise refused


def advise(
    spec: PipelineSpec,
    lake: Lake,
    question: Question,
    spark: SparkSession,
    progress: Progress = lambda step: None,
    opened: OpenedLog | None = None,
) -> Advice:
    """The losses and delays of every bound and allowed lateness on offer.

    Args:
        spec: the pipeline; nothing need have been published.
        lake: where its landing table lies.
        question: the question.
        spark: the session.
        progress: is called with each step as it begins.
        opened: the log of the landing table, where it is open already.

    Raises:
        InputError: no advice can be given for the pipeline, or the landing table does not match it.
    """
    require_advisable(spec)
    opened = opened or OpenedLog.newest(lake, spec)
    landing = open_landing(spark, lake, spec, question.now_ms, opened.log)
    state = opened.ledger.state()
    with failures_recorded(spark, spec.pipeline, "advise", lambda message: None):
        require_all_expressions(landing)
        axis = landing.axis(state)
        read_bytes = landing.weight([day for day in landing.days if day is not None])["bytes"]
        with for_input_of(spark, read_bytes, spec.spark):
            offer, horizon_ms = _offer(landing, question), _horizon(landing, axis, question)
            return _advice(_Count(landing, axis, offer, horizon_ms), question, progress)


@dataclass(frozen=True)
class _Count:
    """The losses of a landing's records at the totals on offer.

    Attributes:
        landing: the landing table.
        axis: its axis of instants.
        offer: the totals, for the same pipeline.
        horizon_ms: only arrivals before it count.
    """

    landing: Landing
    axis: Axis
    offer: Offer
    horizon_ms: int

    def with_max_ahead(self, max_ahead: int | None) -> _Count:
        """The same with another limit for event times after the arrival."""
        source = self.offer.spec.source.model_copy(update={"max_ahead": max_ahead})
        spec = self.offer.spec.model_copy(update={"source": source})
        landing, offer = replace(self.landing, spec=spec), replace(self.offer, spec=spec)
        return replace(self, landing=landing, offer=offer)

    @property
    def known(self) -> DataFrame:
        """The rows of all arrival days that are known at the horizon, duplicates marked."""
        return known_rows(self.landing, self.landing.days, self.horizon_ms)

    @cached_property
    def history(self) -> History:
        """The history of a watermark with bound 0."""
        return observe_without_bound(self.known, self.offer, self.axis, self.horizon_ms)

    @cached_property
    def closes(self) -> Reached:
        """When each total closes each window."""
        return reached(self.history, self.offer, self.horizon_ms)

    @property
    def losses(self) -> Losses:
        """The records lost at each total, by day, channel and key."""
        records, horizon_ms = self.landing.records(), self.horizon_ms
        return losses_of(records, self.history, self.offer, self.closes, horizon_ms)

    def may_be_ahead(self, limit_ms: int) -> bool:
        """Whether a record may be more than a limit ahead of its arrival, by the observations.

        An upper bound: a cell spans a unit of event time, so its largest time and first arrival may
        be of different records.
        """
        timeline = self.history.timeline
        if self.offer.within != EVERYTHING or (timeline.malformed["reason"] == _AHEAD).any():
            return True  # event times are cut to the range; or these are malformed by now
        days = set(timeline.day_map["arrival_date"])
        cells = timeline.cells(CellQuery(days, columns=("largest_ts_ms", "first_arrival_ms")))
        ahead_ms = cells["largest_ts_ms"] - cells["first_arrival_ms"]
        return bool((ahead_ms > limit_ms).any())

    def ahead(self, limit_ms: int) -> int:
        """How many well-formed records are more than a limit ahead of their arrival."""
        ahead = self.known.where(
            F.col(c.REASON).isNull() & (F.col(c.TS) - F.col(c.ARRIVAL) > F.lit(limit_ms))
        )
        counted = collected(ahead.agg(F.count(F.lit(1)).alias(c.RECORDS)))
        return int(counted[c.RECORDS].iloc[0])


def _advice(count: _Count, question: Question, progress: Progress) -> Advice:
    spec, offer = count.offer.spec, count.offer
    progress("observe")
    closes = count.closes
    progress("count")
    losses = count.losses.computed
    curve = losses.curve

    def parts(names: Sequence[str], *, at_ms: int, most: int = _MOST_PARTS) -> WorstParts:
        return losses.worst(names, at_ms=at_ms, most=most) if names else WorstParts()

    in_force_ms, chosen_ms = spec.total_lateness_ms, curve.smallest(question.keep)
    channels = parts([c.CHANNEL] if spec.source.channel else [], at_ms=in_force_ms)
    keys = parts(c.keys_of(spec), at_ms=in_force_ms)
    days = parts([DAY], at_ms=in_force_ms if chosen_ms is None else chosen_ms, most=_MOST_DAYS)
    progress("look for clocks ahead")
    bad = count.history.timeline.malformed.groupby("reason")["records"].sum()
    return Advice(
        spec=spec,
        within=offer.within,
        horizon_ms=count.horizon_ms,
        unit_ms=offer.unit_ms,
        keep=question.keep,
        curve=curve,
        delays=delays_of(closes, offer.grid.size_ms),
        windows=len(closes.slots_ms),
        channels=channels,
        keys=keys,
        days=days,
        malformed={str(reason): int(many) for reason, many in bad.items()},
        clocks=_clocks_ahead(count, curve, question.max_ahead_ms),
    )


def _horizon(landing: Landing, axis: Axis, question: Question) -> int:
    """The given horizon, or just after the last arrival; never after the current time.

    Raises:
        InputError: the given one lies after the current time.
    """
    as_of_ms, now_ms = question.as_of_ms, question.now_ms
    if as_of_ms is not None and now_ms is not None and as_of_ms > now_ms:
        raise InputError("--as-of", "lies in the future", "give an instant in the past")
    return landing.horizon(axis, as_of_ms, known_ms=None)


def _offer(landing: Landing, question: Question) -> Offer:
    """The totals on offer; a short history gets a finer unit."""
    spec, days = landing.spec, [day for day in landing.days if day is not None]
    span_ms = midnight_of(max(days)) - midnight_of(min(days)) + DAY_MS if days else None
    within = question.within or EVERYTHING
    if span_ms is not None:
        span_ms = min(span_ms, within.end_ms - within.start_ms)
    unit_ms = unit_of(Grid.of(spec).step_ms, span_ms)
    return Offer(spec, within, unit_ms, totals_on_offer(unit_ms, spec.total_lateness_ms))


def _clocks_ahead(count: _Count, curve: LossCurve, asked_ms: int | None) -> ClocksAhead:
    """The losses caused by records ahead of their arrival.

    The landing is read again only if, by the observations, there may be such records.
    """
    own_ms = count.offer.spec.source.max_ahead
    limit_ms = next(ms for ms in (asked_ms, own_ms, _AHEAD_MS) if ms is not None)
    without = count if own_ms is None else count.with_max_ahead(None)
    ahead = without.ahead(limit_ms) if count.may_be_ahead(limit_ms) else 0
    if not ahead:
        return ClocksAhead(limit_ms, limit_ms == own_ms, 0)
    of_limit, of_none = (
        curve if ms == own_ms else count.with_max_ahead(ms).losses.curve for ms in (limit_ms, None)
    )
    return ClocksAhead(limit_ms, limit_ms == own_ms, ahead, of_limit, of_none)
