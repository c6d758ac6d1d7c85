"""When each channel's watermark passed a window, from the timeline."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from strandline.engine.position.axis import Axis
from strandline.engine.watermark.by_records import RecordCrossings
from strandline.engine.watermark.channels import probe_order
from strandline.engine.watermark.crossings import Instants, known_before
from strandline.lake.store.days import Days, facts_of_files
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import StoredTimeline
from strandline.model.intervals import DAY_MS, day_of, midnight_of
from strandline.pipeline.views.channels import largest_offer_before
from strandline.spec import PipelineSpec

if TYPE_CHECKING:
    from strandline.pipeline.views.shown import Shown

MOST_CHANNELS = 20
_NEVER_MS = 2**62


def channels_passed(
    shown: Shown, fires_ms: int, closes_ms: int | None, fired_at_ms: int | None = None
) -> tuple[list[dict[str, Any]], int] | None:
    """The channels by when they passed a window, the last first, and their number.

    Channels that passed it after it had fired, since they joined later, come after the others.

    None: the records of channels alone do not decide when the watermark passes: it follows the
    clock, channels go idle or retire, or there are two inputs or results of another pipeline.

    Args:
        shown: the pipeline.
        fires_ms: the watermark at which the window fires.
        closes_ms: the watermark at which it closes; None: it never does.
        fired_at_ms: when it fired; None: it has not.

    Returns:
        Of each `channel` (empty: the only one) when its own watermark reached the end of the
        window (`fired_ms`), and the end of the allowed lateness (`closed_ms`); None: it has not.
    """
    start_ms = shown.state.clock_start_ms
    if start_ms is None or not _is_decided_by_channels(shown.spec):
        return None
    known = _crossings(shown, Axis.of(shown.spec, start_ms), fires_ms)
    if known is None:
        return None
    crossings, before_ms = known
    thresholds = [fires_ms] if closes_ms is None else [fires_ms, closes_ms]
    by_channel = crossings.seen_from(thresholds)
    found = [
        {"channel": channel, **_passed_at(crossings.axis, visible, before_ms)}
        for channel, visible in zip(crossings.order.channels, by_channel, strict=True)
    ]
    found.sort(key=lambda one: _last_first(one, fired_at_ms))
    return found[:MOST_CHANNELS], len(found)


def _is_decided_by_channels(spec: PipelineSpec) -> bool:
    """Whether the records of channels alone decide when the watermark advances."""
    by_others = spec.has_two_sources or spec.reads_results_of is not None
    by_clock = spec.watermark.idleness_in_effect or spec.watermark.goes_by_the_clock
    return not (by_others or by_clock or spec.source.retired)


def _crossings(shown: Shown, axis: Axis, fires_ms: int) -> tuple[RecordCrossings, int] | None:
    """The channels' crossings since a window's end, and the instant up to which they are known.

    Only files of arrival days are opened on which a channel may have passed the window. None:
    nothing is observed.
    """
    spec, facts = shown.spec, facts_of_files(shown.store, "timeline")
    last = max((day for day in facts.get("day", ()) if day is not None), default=None)
    if last is None:
        return None
    before_ms = midnight_of(last) + DAY_MS
    is_declared = spec.source.declared_channels is not None
    days = Days(_first_day(facts, fires_ms) if is_declared else None)
    table = TimelineTable.open(shown.store, days.rows_of("timeline"))
    timeline = StoredTimeline(table, spec.timeline_fingerprint, before_ms)
    order = probe_order(timeline, spec, axis)
    return RecordCrossings(timeline, spec, axis, order=order), before_ms


def _passed_at(axis: Axis, visible: Instants, before_ms: int) -> dict[str, int | None]:
    known = known_before(visible, before_ms, axis)
    at_ms = [
        axis.event_ms(int(one), 0) if is_known else None
        for one, is_known in zip(visible, known, strict=True)
    ]
    return {"fired_ms": at_ms[0], "closed_ms": at_ms[1] if len(at_ms) > 1 else None}


def _first_day(facts: dict[str, list[Any]], fires_ms: int) -> date | None:
    """The first arrival day to read: earlier arrivals offered no such watermark.

    None: all days, since a clock was once ahead.
    """
    first = day_of(fires_ms)
    is_ahead = largest_offer_before(facts, first) >= fires_ms
    return None if is_ahead else first


def _last_first(one: dict[str, Any], fired_at_ms: int | None) -> tuple[bool, int, int, str]:
    fired_ms, closed_ms = (
        _NEVER_MS if one[edge] is None else one[edge] for edge in ("fired_ms", "closed_ms")
    )
    is_after = fired_at_ms is not None and fired_ms > fired_at_ms
    return is_after, -fired_ms, -closed_ms, one["channel"]
