"""The advisor's question and its answer: settings, their losses and their delays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from strandline.engine.losses.losses import LossesOf, WorstParts
from strandline.engine.losses.reached import Reached
from strandline.model.intervals import EVERYTHING, TimeRange, text_of
from strandline.model.loss_curve import LossCurve
from strandline.spec.pipeline import PipelineSpec

_QUANTILES = {"final_after_ms": 0.5, "final_after_ms_95": 0.95, "final_after_ms_longest": 1}


@dataclass(frozen=True)
class Question:
    """A question for the advisor.

    Attributes:
        keep: the share of the records that a setting shall keep.
        within: the range of window starts; None: all windows.
        as_of_ms: the horizon; None: just after the last arrival.
        max_ahead_ms: the limit for clocks ahead; None: the pipeline's `max_ahead`, or an hour.
        now_ms: the current time; None: not checked.
    """

    keep: Fraction
    within: TimeRange | None = None
    as_of_ms: int | None = None
    max_ahead_ms: int | None = None
    now_ms: int | None = None


@dataclass(frozen=True)
class ClocksAhead:
    """The losses caused by records whose event time is more than a limit after their arrival.

    Attributes:
        limit_ms: the limit, as in `max_ahead`.
        is_in_force: whether the pipeline's file sets it.
        records: the number of such records.
        with_limit: the loss curve if they are malformed; None: there are none.
        without: the loss curve if they count, and raise the watermark; None: there are none.
    """

    limit_ms: int
    is_in_force: bool
    records: int
    with_limit: LossCurve | None = None
    without: LossCurve | None = None


@dataclass(frozen=True)
class Advice:
    """The loss curve of a pipeline, which parts lose most, and the delay of each setting.

    Attributes:
        within: the range of window starts.
        horizon_ms: only arrivals before it count.
        unit_ms: every total except the one in force is a multiple of it.
        keep: the share that a setting shall keep.
        curve: the loss curve of all records at the totals on offer.
        delays: see `delays_of`.
        windows: the number of windows that are the newest of a record; the delays are theirs.
        channels: the channels that lose most records by the setting in force.
        keys: the keys that lose most records by the setting in force.
        days: the days that lose most records by the smallest setting that keeps the share.
        malformed: the malformed rows of the whole landing by reason.
        clocks: the losses caused by clocks ahead.
    """

    spec: PipelineSpec
    within: TimeRange
    horizon_ms: int
    unit_ms: int
    keep: Fraction
    curve: LossCurve
    delays: Sequence[Mapping[str, int | None]]
    windows: int
    channels: WorstParts
    keys: WorstParts
    days: WorstParts
    malformed: Mapping[str, int]
    clocks: ClocksAhead

    @property
    def chosen_ms(self) -> int | None:
        """The smallest total lateness on offer that keeps the requested share; None: none does."""
        return self.curve.smallest(self.keep)

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`; durations in ms, shares as fractions."""
        spec, chosen = self.spec, self.chosen_ms
        own_ms = spec.total_lateness_ms
        return {
            "pipeline": spec.pipeline,
            "windows_from": _edge(self.within.start_ms),
            "windows_before": _edge(self.within.end_ms),
            "horizon": text_of(self.horizon_ms),
            "keep": f"{float(self.keep * 100):.10g}%",
            "keep_share": float(self.keep),
            "records": self.curve.records,
            "windows": self.windows,
            "malformed": dict(self.malformed),
            "unit_ms": self.unit_ms,
            "bound_name": spec.watermark.bound_field,
            "in_force": self._setting(own_ms),
            "smallest": None if chosen is None else self._setting(chosen),
            "settings": [self._row(total_ms) for total_ms in self.curve.totals_ms],
            "channels": [self._part(one) for one in self.channels.worst],
            "channels_in_all": self.channels.of,
            "key": list(spec.source.key),
            "keys": [self._part(one) for one in self.keys.worst],
            "keys_in_all": self.keys.of,
            "days": [self._part(one) for one in self.days.worst],
            "clocks_ahead": self._clocks(),
        }

    def _setting(self, total_ms: int) -> dict[str, Any]:
        """A total as a bound and an allowed lateness: the bound in force, unless it is too long."""
        bound_ms = min(self.spec.watermark.bound_ms or 0, total_ms)
        both = {"bound_ms": bound_ms, "allowed_lateness_ms": total_ms - bound_ms}
        return self._row(total_ms) | both

    def _row(self, total_ms: int) -> dict[str, Any]:
        lost = self.curve.lost_at(total_ms)
        return {
            "total_ms": total_ms,
            "lost": lost,
            "share_lost": _share(lost, self.curve.records),
            **self.delays[self.curve.totals_ms.index(total_ms)],
        }

    def _part(self, part: LossesOf) -> dict[str, Any]:
        curve, own_ms, chosen = part.curve, self.spec.total_lateness_ms, self.chosen_ms
        lost, kept_by = curve.lost_at(own_ms), curve.smallest(self.keep)
        lost_then = None if chosen is None else curve.lost_at(chosen)
        return {
            "name": list(part.name),
            "records": curve.records,
            "lost": lost,
            "share_lost": _share(lost, curve.records),
            "lost_by_smallest": lost_then,
            "smallest_total_ms": kept_by,
        }

    def _clocks(self) -> dict[str, Any]:
        clocks, own_ms = self.clocks, self.spec.total_lateness_ms

        def lost(curve: LossCurve | None) -> dict[str, int] | None:
            if curve is None:
                return None
            return {"records": curve.records, "lost": curve.lost_at(own_ms)}

        return {
            "max_ahead_ms": clocks.limit_ms,
            "in_force": clocks.is_in_force,
            "records": clocks.records,
            "with": lost(clocks.with_limit),
            "without": lost(clocks.without),
        }


def delays_of(closes: Reached, size_ms: int) -> list[dict[str, int | None]]:
    """How long after their end windows are final, for each total on offer.

    The median, the 95th percentile and the longest of the windows that are final at the horizon
    (None: none is), and their number.
    """
    after_end = closes.happened_ms - (closes.slots_ms + size_ms)[:, None]
    delays = []
    for column in after_end.T:
        final, delay = column[~np.isnan(column)], dict[str, int | None].fromkeys(_QUANTILES)
        if len(final):
            found = np.quantile(final, [*_QUANTILES.values()], method="inverted_cdf")
            delay = {name: round(float(ms)) for name, ms in zip(_QUANTILES, found, strict=True)}
        delays.append({**delay, "windows_final": len(final)})
    return delays


def _edge(instant_ms: int) -> str | None:
    """A bound of the range as a text; None: unbounded on that side."""
    is_open = instant_ms in {EVERYTHING.start_ms, EVERYTHING.end_ms}
    return None if is_open else text_of(instant_ms)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
