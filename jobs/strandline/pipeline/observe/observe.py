"""Observes the arrivals below a horizon, once for each whole day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

import pandas as pd

from strandline.engine.history.history import History, Upstream
from strandline.engine.history.inputs import FreshOfTwo, HistoryOfTwo, Input, OfInput
from strandline.engine.history.observed import (
    ObservedDay,
    assemble_history,
    observe_days,
    violations,
)
from strandline.engine.idleness.source import Source
from strandline.engine.idleness.union import Union
from strandline.engine.position.axis import Axis
from strandline.engine.timeline import CombinedTimeline
from strandline.engine.watermark_values.forwarded import history_behind
from strandline.errors import InputError
from strandline.lake.landing.joined_landing import JoinedLanding
from strandline.lake.landing.landing import Landing
from strandline.lake.landing.results_landing import ResultsLanding
from strandline.lake.publish.staging import Staging
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import StoredTimeline, read_steps, read_violations
from strandline.model.intervals import text_of
from strandline.pipeline.observe.landing_status import LandingStatus, landing_status_of
from strandline.pipeline.observe.observation import (
    DaysToObserve,
    Observation,
    ObservedInput,
    observe_input,
)
from strandline.quality.figures import exact_duration
from strandline.spec import PipelineSpec
from strandline.spec.joined import JoinedSpec
from strandline.spec.pipeline import channel_of
from strandline.visible import number_of


def observe_landing(
    landing: Landing, staging: Staging, axis: Axis, horizon_ms: int, status: LandingStatus
) -> Observation:
    """Observe the days below a horizon that the timeline lacks, or has with other rows.

    If each day depends on the one before (`days_follow_each_other`), all days from the first of
    these on are observed.

    Raises:
        InputError: records break an order that the watermark assumes, with `on_violation: fail`; or
            a day with missing rows has to be observed again.
    """
    days = DaysToObserve.of(landing, status, horizon_ms)
    if isinstance(landing, JoinedLanding):
        return _observe_two(landing, staging, axis, days, status)
    spec = landing.spec
    fingerprint = spec.timeline_fingerprint
    found = observe_input(landing, staging, axis, days, status, fingerprint=fingerprint)
    timeline = CombinedTimeline(_known(status.timeline, spec, days), found.fresh)
    if isinstance(landing, ResultsLanding):
        upstream = _upstream_of(landing, staging, axis, horizon_ms)
        history = history_behind(landing.spec, timeline, upstream)
    else:
        history = assemble_history(
            timeline,
            spec,
            Source(spec, axis),
            found.steps,
            found.observed_steps,
            horizon_ms=horizon_ms,
        )
    observation = Observation(
        history, days.whole, days.partial, found.fresh, {"": found}, found.observed_steps, status
    )
    return _with_violations(observation, landing, days)


def _observe_two(
    landing: JoinedLanding, staging: Staging, axis: Axis, days: DaysToObserve, status: LandingStatus
) -> Observation:
    """Observe the same days of both sources of a join: see `observe_landing`."""
    spec = landing.spec
    of_pairs = spec if isinstance(spec, JoinedSpec) else None
    found = {
        name: observe_input(
            one,
            staging.beside(name),
            landing.axis_of(name, axis),
            days,
            status,
            fingerprint=spec.timeline_fingerprint,
            name=name,
            own_watermark=of_pairs is not None,
        )
        for name, one in landing.inputs.items()
    }
    fresh = FreshOfTwo(*(one.fresh for one in found.values()))
    timeline = CombinedTimeline(_known(status.timeline, spec, days), fresh)
    if of_pairs is not None:
        history, observed_steps = _pairs(landing, of_pairs, axis, timeline, found, days)
    else:
        history, observed_steps = _behind_one_valve(landing, axis, timeline, found, days, status)
    observation = Observation(
        history, days.whole, days.partial, fresh, found, observed_steps, status
    )
    return _with_violations(observation, landing, days)


_Found = tuple[History, list[ObservedDay]]
"""The history of both sources, and the steps of the days observed now."""


def _pairs(
    landing: JoinedLanding,
    spec: JoinedSpec,
    axis: Axis,
    timeline: CombinedTimeline,
    found: Mapping[str, ObservedInput],
    days: DaysToObserve,
) -> _Found:
    """Observe an interval join, in which each source has its own watermark."""
    inputs = {}
    for name, one in landing.inputs.items():
        history = assemble_history(
            OfInput(timeline, name),
            one.spec,
            Source(one.spec, landing.axis_of(name, axis)),
            found[name].steps,
            found[name].observed_steps,
            horizon_ms=days.horizon_ms,
        )
        records = one.records(history.days.rebuilt)
        inputs[name] = Input(records, one.source_columns, history)
    observed_steps = [day for one in found.values() for day in one.observed_steps]
    return HistoryOfTwo.of(timeline, spec, inputs), observed_steps


def _behind_one_valve(
    landing: JoinedLanding,
    axis: Axis,
    timeline: CombinedTimeline,
    found: Mapping[str, ObservedInput],
    days: DaysToObserve,
    status: LandingStatus,
) -> _Found:
    """Observe windows over both sources, whose channels share one valve."""
    spec = landing.spec
    left, right = (landing.axis_of(name, axis) for name in landing.inputs)
    source = Union.of(spec, (left, right))
    under = spec.timeline_fingerprint
    kept = read_steps(status.timeline, source, before_ms=days.first_ms, under=under)
    records, horizon_ms = {name: one.records for name, one in found.items()}, days.horizon_ms
    observed_steps = [*observe_days(source, records, timeline.fresh, kept, horizon_ms)]
    history = assemble_history(timeline, spec, source, kept, observed_steps, horizon_ms=horizon_ms)
    return history, observed_steps


def _upstream_of(
    landing: ResultsLanding, staging: Staging, axis: Axis, horizon_ms: int
) -> Upstream:
    """The pipeline whose results a landing holds, at the time when it published them.

    These observations of it are not stored: that pipeline stores its own.
    """
    source = landing.upstream
    status = landing_status_of(source, landing.upstream_store, landing.log.state)
    observation = observe_landing(
        source, staging.beside("_upstream"), axis, horizon_ms, status.of_an_earlier_landing
    )
    records = source.records(observation.history.days.rebuilt)
    return Upstream(records, observation.history.in_probe_order(records))


def _known(table: TimelineTable, spec: PipelineSpec, days: DaysToObserve) -> StoredTimeline:
    """The part of the timeline for days that are not observed now.

    If each day depends on the one before, it has only earlier days.
    """
    until_ms = days.first_ms if spec.days_follow_each_other else days.horizon_ms
    return StoredTimeline(table, spec.timeline_fingerprint, until_ms, frozenset(days.whole))


def _with_violations(
    observation: Observation, landing: Landing, days: DaysToObserve
) -> Observation:
    """An observation with its violations of order, if they are counted."""
    broken = [
        _broken(observation, one, name)
        for name, one in landing.inputs.items()
        if one.spec.watermark.violation_handler is not None
    ]
    if not broken:
        return observation
    table, fingerprint = observation.status.timeline, landing.spec.timeline_fingerprint
    before = read_violations(table, fingerprint, before_ms=days.first_ms)
    return replace(
        observation,
        violations=pd.concat(broken, ignore_index=True),
        violations_before=before,
    )


def _broken(observation: Observation, landing: Landing, name: str) -> pd.DataFrame:
    """The records of one source that broke the order which its watermark assumes.

    Raises:
        InputError: there is one, with `on_violation: fail`.
    """
    history = observation.history.of_sides.get(name, observation.history)
    records = observation.inputs[name].records
    broken: pd.DataFrame = violations(records, history).toArrow().to_pandas()
    if landing.spec.watermark.violation_handler == "fail" and len(broken):
        _fail(broken, landing.spec)
    channels = [channel_of(name, of) if name else of for of in broken["channel"]]
    return broken.assign(channel=pd.Series(channels, index=broken.index, dtype=object))


def behind_earlier_ones(records: int) -> str:
    """The sentence that records break the ascending order that a watermark assumes."""
    whose = "its" if records == 1 else "their"
    return f"{number_of(records, 'record')} came behind an earlier one of {whose} channel"


def _fail(broken: pd.DataFrame, spec: PipelineSpec) -> NoReturn:
    """Fail where Flink's job does: at the first record that breaks the order."""
    first = broken.sort_values(["first_arrival_ms", "channel"]).iloc[0]
    count, behind_ms = int(broken["violations"].sum()), int(broken["behind_ms"].max())
    of_channel = f" of channel {first['channel']!r}" if spec.source.channel else ""
    raise InputError(
        f"{spec.pipeline}: watermark.on_violation",
        f"{behind_earlier_ones(count)}, by up to {exact_duration(behind_ms)}; the "
        f"first{of_channel} at {text_of(int(first['first_arrival_ms']))}",
        "choose on_violation: warn, or bounded_out_of_orderness with a bound for the disorder",
    )
