"""The activity of a stream's channels counted record by record, as the engine counts it in sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from cells import axis_of, instant_of

from strandline.engine.idleness.activity import Activity
from strandline.engine.idleness.rules import IdlenessRules
from strandline.engine.idleness.steps import STEP_COLUMNS
from strandline.engine.watermark.by_steps import SOURCE_DAY_COLUMNS, StepDays
from strandline.model.intervals import day_of
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.watermark import CandidateExpression, Punctuated

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import date

    from strategies import Stream

    from strandline.engine.history.observed import ObservedDay
    from strandline.reference.records import Record


def step_days(observed: Sequence[ObservedDay]) -> StepDays:
    """The steps of some days as a timeline keeps them."""
    of_day = {one.day: one.steps for one in observed}
    ends = [(one.day, one.carried.until_ms, one.carried.combined_ms) for one in observed]
    nothing = pd.DataFrame(columns=[*STEP_COLUMNS])

    def read(days: Collection[date]) -> pd.DataFrame:
        there = [of_day[day] for day in sorted(days) if len(of_day[day])]
        return pd.concat(there, ignore_index=True) if there else nothing

    return StepDays(pd.DataFrame(ends, columns=[*SOURCE_DAY_COLUMNS]), read)


def activity_of(
    stream: Stream, records: Sequence[Record], rules: IdlenessRules | None = None
) -> Activity:
    """What the channels did on the arrival days of some records, as far as it moves something.

    `rules`: None: the pipeline's own; else those of one of two inputs.
    """
    rules = rules or IdlenessRules.of(stream.spec, axis_of(stream))
    ticks, watermark = rules.ticks, stream.spec.watermark
    shown: dict[tuple[Any, ...], int | None] = {}
    at_once: dict[tuple[Any, ...], int] = {}
    first: dict[tuple[Any, ...], tuple[int, int, int]] = {}
    for record in records:
        day, instant = day_of(record.arrival_ms), instant_of(stream, record)
        offer = None
        if isinstance(watermark, CandidateExpression):
            offer = record.candidate_ms
        elif watermark.candidate is not None:
            offer = watermark.candidate.of(record.ts_ms)
        place = (day, record.channel, ticks.after(record.arrival_ms))
        shown[place] = max((c for c in (offer, shown.get(place)) if c is not None), default=None)
        now = offer if rules.offers_at_once else None
        if isinstance(watermark, Punctuated):
            now = record.ts_ms if record.marker else None
        elif watermark.lag_ms is not None and rules.offers_at_once:
            now = record.arrival_ms - watermark.lag_ms
        if now is not None:
            moment = (day, record.channel, instant + 1)
            at_once[moment] = max(now, at_once.get(moment, now))
        sequence = record.sequence or 0 if stream.spec.source.sequence else 0
        came = (instant, sequence, record.ts_ms)
        first[day, record.channel] = min(came, first.get((day, record.channel), came))
    rows = []
    places = sorted(shown)
    for i, (day, channel, tick) in enumerate(places):
        before = [place for place in places[:i] if place[:2] == (day, channel)]
        last = places[i + 1 : i + 2] == [] or places[i + 1][:2] != (day, channel)
        offer = shown[day, channel, tick]
        offered = [shown[place] for place in before if shown[place] is not None]
        higher = offer is not None and offer > max(offered, default=MIN_WATERMARK)
        if last or higher or not before or tick - before[-1][2] > rules.timeout_ms:
            rows.append((day, channel, tick, before[-1][2] if before else None, offer))
    declared = stream.spec.source.declared_channels is not None
    return Activity(
        on_ticks=pd.DataFrame(
            rows, columns=["arrival_date", "channel", "tick_ms", "before_ms", "candidate_ms"]
        ).astype({"before_ms": "Int64", "candidate_ms": "Int64"}),
        at_once=pd.DataFrame(
            [(*place, value) for place, value in at_once.items()],
            columns=["arrival_date", "channel", "seen_from", "candidate_ms"],
        ),
        first=pd.DataFrame(
            [] if declared else [(*place, *came) for place, came in first.items()],
            columns=["arrival_date", "channel", "instant", "sequence", "ts_ms"],
        ),
    )
