"""The combined watermark where channels can go idle, day by day, from what was heard on each tick.

What a channel's records do is told by few rows: on which tick something new became known, and how
long it had been silent before. From one day to the next a small state is carried.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from strandline.engine.idleness.steps import STEP_COLUMNS
from strandline.engine.idleness.valve import IDLE, JOIN, RAISE, Channels, Events, Splits, Valve
from strandline.engine.position.axis import TICK_RANK, Axis
from strandline.model.intervals import DAY_MS, midnight_of
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.model.watermarks import Ticks
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.watermark import NoWatermarks, Punctuated, Watermark

_LONGEST_MS = 400_000_000_000_000
"""More than the years 0001 to 9999: who may be silent for so long never goes idle."""
_BEFORE_ALL = -1
"""The rank of a channel that joins: ahead of what is offered at the same moment."""
_BELOW_ALL = -_LONGEST_MS
Longs = npt.NDArray[Any]


@dataclass(frozen=True)
class Activity:
    """What the channels did on some arrival days.

    Attributes:
        heard: `arrival_date`, `channel`, `tick_ms` (the tick that shows a record),
            `before_ms` (the tick that showed the one before; null: none on that day),
            `candidate_ms` (the largest offered there; null: none).
        at_once: `arrival_date`, `channel`, `seen_from`, `candidate_ms`: what records offer at once.
        first: `arrival_date`, `channel`, `instant`, `sequence`, `ts_ms`: of the day's first record;
            for discovered channels only.
    """

    heard: pd.DataFrame
    at_once: pd.DataFrame
    first: pd.DataFrame

    def of(self, day: date) -> Activity:
        """That of one day."""
        parts = (self.heard, self.at_once, self.first)
        return Activity(*(part[part["arrival_date"] == day] for part in parts))


SILENCE = Activity(
    pd.DataFrame(columns=["arrival_date", "channel", "tick_ms", "before_ms", "candidate_ms"]),
    pd.DataFrame(columns=["arrival_date", "channel", "seen_from", "candidate_ms"]),
    pd.DataFrame(columns=["arrival_date", "channel", "instant", "sequence", "ts_ms"]),
)
"""What channels do on days without a record."""


@dataclass(frozen=True)
class Channel:
    """Where a channel stands between two ticks.

    Attributes:
        name: of the channel.
        joined: the instant of its first record; None: declared, there from the beginning.
        watermark_ms: what it has offered.
        active: whether it takes part in the combined watermark.
        been_idle: whether it has ever been idle.
        heard_ms: the last tick that has shown a record, the clock's start at first; None: none.
        pending_ms: the tick to come that will show a record; None: there is none.
        pending_candidate_ms: what it will offer there.
        raised_ms: the moment at which it last raised its watermark; None: not yet.
    """

    name: str
    joined: int | None = None
    watermark_ms: int = MIN_WATERMARK
    active: bool = True
    been_idle: bool = False
    heard_ms: int | None = None
    pending_ms: int | None = None
    pending_candidate_ms: int | None = None
    raised_ms: int | None = None


@dataclass(frozen=True)
class Carried:
    """Where a source stands at an instant: all that later days need to know of it.

    Attributes:
        until_ms: the ticks before it have run; None: none has.
        channels: in probe order.
        combined_ms: the combined watermark.
        quiet: whether a source of splits has told that it is idle.
        splits_idle: whether all its splits have been idle since its watermark rose.
    """

    until_ms: int | None = None
    channels: tuple[Channel, ...] = ()
    combined_ms: int = MIN_WATERMARK
    quiet: bool = False
    splits_idle: bool = True

    @classmethod
    def at_the_start(cls, spec: PipelineSpec, axis: Axis) -> Carried:
        """Before any tick."""
        declared = spec.source.declared_channels or ()
        return cls(channels=tuple(Channel(name, heard_ms=axis.start_ms) for name in declared))

    def to_json(self) -> str:
        """As a text for the timeline."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Carried:
        """The state of such a text."""
        state = json.loads(text)
        channels = tuple(Channel(**channel) for channel in state.pop("channels"))
        return cls(channels=channels, **state)


@dataclass(frozen=True)
class _Heard:
    """What one channel did until an instant.

    Attributes:
        ticks: those that show something new.
        before: for each, the tick that has shown the record before; below all times: none.
        candidates: what is offered there; MIN_WATERMARK: nothing.
        at_once: (seen from, candidate) of what records offer at once.
        heard_ms: the last tick that has shown a record.
    """

    ticks: Longs
    before: Longs
    candidates: Longs
    at_once: tuple[Longs, Longs]
    heard_ms: int | None


class Source:
    """The channels of a pipeline whose idleness is in effect.

    Attributes:
        ticks: on which idleness is judged.
        patience_ms: how long after the tick that has shown its last record a channel is idle.
    """

    def __init__(self, spec: PipelineSpec, axis: Axis) -> None:
        """Prepare for a pipeline with ticks."""
        ticks, idleness_ms = axis.ticks, spec.watermark.idleness
        if ticks is None or idleness_ms is None:
            msg = f"{spec.pipeline}: no channel goes idle"
            raise TypeError(msg)
        self._watermark: Watermark = spec.watermark
        self._axis = axis
        self.ticks: Ticks = ticks
        self._splits = spec.watermark.combine == "splits"
        interval_ms = ticks.interval_ms
        # the first silent tick starts the timer; idle is who is silent for more than the timeout
        self.patience_ms = min((2 + idleness_ms // interval_ms) * interval_ms, _LONGEST_MS)

    def advance(
        self, carried: Carried, activity: Activity, until_ms: int
    ) -> tuple[pd.DataFrame, Carried]:
        """Take in a day's activity and run the ticks before an instant: the steps, and the state.

        Everything in the activity arrived before that instant, and not before the last one.
        """
        known = list(carried.channels)
        newcomers = _newcomers(known, activity.first)
        channels = [*known, *newcomers]
        heard = dict(iter(activity.heard.groupby("channel")))
        at_once = dict(iter(activity.at_once.groupby("channel")))
        told, moved = [], []
        for channel in channels:
            one, after = _until(
                channel, heard.get(channel.name), at_once.get(channel.name), until_ms
            )
            told.append(one)
            moved.append(after)
        if self._watermark.goes_by_the_clock:
            steps, state = self._by_the_clock(carried, channels, moved, told, until_ms)
        else:
            steps, state = self._by_records(carried, channels, moved, told, until_ms)
        return steps, replace(state, until_ms=until_ms)

    def follow(
        self, carried: Carried, activity: Activity, days: Iterable[date], horizon_ms: int
    ) -> Iterator[tuple[date, pd.DataFrame, Carried]]:
        """Take in the activity of some days in their order: each day's steps, and where it ends.

        The ticks of silent days before a day are told with it.
        """
        for day in sorted(days):
            until_ms = min(midnight_of(day) + DAY_MS, horizon_ms)
            steps, carried = self.advance(carried, activity.of(day), until_ms)
            yield day, steps.assign(arrival_date=day), carried

    def at_end(self, carried: Carried) -> tuple[tuple[int, int], ...]:
        """(rank, watermark) of the rises if the input ended where the state stands.

        Flink drops the last watermark of a source of splits that is idle: there are none.
        """
        if self._splits:
            return () if carried.quiet else ((TICK_RANK, MAX_WATERMARK),)
        if not carried.channels:
            return ()
        if self._watermark.goes_by_the_clock:
            offering = [i for i, channel in enumerate(carried.channels) if channel.active]
            return ((TICK_RANK + max(offering, default=0), MAX_WATERMARK),)
        valve = Valve(_channels(carried, carried.channels))
        return tuple((TICK_RANK + channel, value) for channel, value in valve.end())

    # ------------------------------------------------------------------------------- by records

    def _by_records(
        self,
        carried: Carried,
        channels: Sequence[Channel],
        moved: Sequence[Channel],
        told: Sequence[_Heard],
        until_ms: int,
    ) -> tuple[pd.DataFrame, Carried]:
        parts = []
        for number, (channel, one) in enumerate(zip(channels, told, strict=True)):
            on_tick, at_once = TICK_RANK + number, number
            if self._splits:  # all of a moment are merged at once
                on_tick, at_once = TICK_RANK, 0
            if number >= len(carried.channels):
                joins = np.array([_instant(channel) + 1])
                parts.append(_Happened.of(joins, _BEFORE_ALL, number, JOIN))
            idle = self._seen(self._onsets(carried, one, until_ms))
            parts.append(_Happened.of(idle, on_tick, number, IDLE))
            parts.append(_Happened.of(one.at_once[0], at_once, number, RAISE, one.at_once[1]))
            if not isinstance(self._watermark, Punctuated | NoWatermarks):
                seen = self._seen(one.ticks)
                parts.append(_Happened.of(seen, on_tick, number, RAISE, one.candidates))
        happened = _Happened.together(parts)
        if not self._splits:
            happened = happened.where(_raises_only(happened, channels))
        at = _channels(carried, channels)
        combiner = Splits(at) if self._splits else Valve(at)
        rises = combiner.run(happened.events) if len(happened.kind) else []
        none = np.zeros(0, dtype=np.int64)
        places = np.concatenate([none, *(place for place, _ in rises)])
        values = np.concatenate([none, *(value for _, value in rises)])
        steps = _steps(happened.seen_from[places], happened.rank[places], values)
        standing = tuple(
            replace(
                channel,
                watermark_ms=int(at.watermark_ms[i]),
                active=bool(at.active[i]),
                been_idle=bool(at.been_idle[i]),
                raised_ms=self._last_raise(happened, i, channel.raised_ms),
            )
            for i, channel in enumerate(moved)
        )
        after = replace(carried, channels=standing, combined_ms=at.combined_ms)
        if isinstance(combiner, Splits):
            after = self._status(after, carried, combiner, bool(len(places)), until_ms)
        return steps, after

    def _last_raise(self, happened: _Happened, channel: int, before: int | None) -> int | None:
        own = np.flatnonzero((happened.kind == RAISE) & (happened.channel == channel))
        if not len(own):
            return before
        return self._axis.event_ms(int(happened.seen_from[own[-1]]), int(happened.rank[own[-1]]))

    def _status(
        self, after: Carried, before: Carried, splits: Splits, rose: bool, until_ms: int
    ) -> Carried:
        """Whether a source of splits has told that it is idle, which only its end depends on.

        Its main output never sees a record, so it is idle from the end of its patience on.
        """
        splits_idle = splits.all_idle_since_rise or (not rose and before.splits_idle)
        quiet = before.quiet and not rose
        last = self._axis.last_tick_before(until_ms)
        first = self.ticks.start_ms + self.ticks.interval_ms
        if first <= last and (before.until_ms is None or before.until_ms <= first) and not rose:
            at_first = [c for c in after.channels if c.joined is None or _ms(c, self._axis) < first]
            quiet = quiet or not at_first
        if last >= self.ticks.start_ms + self.patience_ms and splits_idle:
            quiet = True
        return replace(after, quiet=quiet, splits_idle=splits_idle)

    # ------------------------------------------------------------------------------ by the clock

    def _by_the_clock(
        self,
        carried: Carried,
        channels: Sequence[Channel],
        moved: Sequence[Channel],
        told: Sequence[_Heard],
        until_ms: int,
    ) -> tuple[pd.DataFrame, Carried]:
        """The steps where ticks alone decide: every channel that is not idle offers on each."""
        first = self._first_tick(carried)
        last = self._axis.last_tick_before(until_ms)
        interval_ms = self.ticks.interval_ms
        offering = [
            self._offering(carried, channel, one, until_ms)
            for channel, one in zip(channels, told, strict=True)
        ]
        before = {
            number
            for number, channel in enumerate(channels)
            if channel.heard_ms is not None
            and first - interval_ms < channel.heard_ms + self.patience_ms
        }
        runs: list[tuple[int, int, int]] = []  # first tick, last tick, rank
        main_until = self.ticks.start_ms + self.patience_ms
        changes = {first, *(tick for spans in offering for span in spans for tick in span)}
        if self._splits:
            changes.add(main_until)
        ticks = sorted(tick for tick in changes if first <= tick <= last)
        joining = {
            number: spans[0][0]
            for number, spans in enumerate(offering)
            if channels[number].heard_ms is None and spans
        }
        starts: dict[int, list[int]] = {}
        ends: dict[int, list[int]] = {}
        for number, spans in enumerate(offering):
            for start, end in spans:
                starts.setdefault(start, []).append(number)
                ends.setdefault(end, []).append(number)
        here: set[int] = set()
        for tick, following in pairwise([*ticks, last + interval_ms]):
            waited_for = before | {n for n, joins in joining.items() if joins == tick}
            here = (here - set(ends.get(tick, ()))) | set(starts.get(tick, ()))
            if self._splits:
                if here or tick < main_until:
                    runs.append((tick, following - interval_ms, TICK_RANK))
            elif here:
                rank = max(max(waited_for, default=-1), min(here))
                runs.append((tick, tick, TICK_RANK + rank))
                if following > tick + interval_ms:
                    after = TICK_RANK + max(here)
                    runs.append((tick + interval_ms, following - interval_ms, after))
            before = here
        steps = self._runs(runs)
        # who has joined after the last tick takes part, without an offer
        standing = tuple(
            replace(
                channel,
                active=number in before or channel.heard_ms is None,
                been_idle=channel.heard_ms is not None and number not in before,
            )
            for number, channel in enumerate(moved)
        )
        combined_ms = carried.combined_ms
        if len(steps):
            top = steps.iloc[-1]
            combined_ms = int(top["watermark_ms"] + top["until"] - top["seen_from"])
        quiet = carried.quiet
        if last >= first:
            quiet = not before and last >= main_until
        return steps, replace(carried, channels=standing, combined_ms=combined_ms, quiet=quiet)

    def _offering(
        self, carried: Carried, channel: Channel, one: _Heard, until_ms: int
    ) -> list[tuple[int, int]]:
        """The ticks on which a channel is asked, as [from, to) between two changes."""
        first = self._first_tick(carried)
        start: int | None = None
        if channel.heard_ms is None:
            start = int(one.ticks[0]) if len(one.ticks) else None
        elif first <= channel.heard_ms + self.patience_ms:
            start = first
        spans: list[tuple[int, int]] = []
        gaps = np.flatnonzero(self._is_late(one))
        returns = [*one.ticks[gaps].tolist(), None]
        ended = (one.before[gaps] + self.patience_ms).tolist()
        last = self._last_onset(one)
        ended.append(_LONGEST_MS if last is None or last >= until_ms else last)
        for end, back in zip(ended, returns, strict=True):
            if start is not None and start < end:
                spans.append((start, end))
            start = back
        return spans

    def _runs(self, runs: Sequence[tuple[int, int, int]]) -> pd.DataFrame:
        lag_ms, interval_ms = self._watermark.lag_ms or 0, self.ticks.interval_ms
        rows = []
        for start, end, rank in runs:
            # an offer is above MIN, or it is none
            missing = max(MIN_WATERMARK + lag_ms + 1 - start, 0)
            begin = start + -(-missing // interval_ms) * interval_ms
            if begin <= end:
                rows.append((begin, rank, begin - lag_ms, end))
        columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        return _steps(*columns)

    # ------------------------------------------------------------------------------------ shared

    def _onsets(self, carried: Carried, one: _Heard, until_ms: int) -> Longs:
        """The ticks before an instant on which the channel is judged idle after it was not."""
        onsets = one.before[self._is_late(one)] + self.patience_ms
        last = self._last_onset(one)
        if last is not None:
            onsets = np.append(onsets, last)
        return onsets[(onsets >= self._first_tick(carried)) & (onsets < until_ms)]

    def _is_late(self, one: _Heard) -> Longs:
        """Before which ticks the channel had become idle."""
        late: Longs = (one.before > _BELOW_ALL) & (one.before + self.patience_ms < one.ticks)
        return late

    def _last_onset(self, one: _Heard) -> int | None:
        return None if one.heard_ms is None else one.heard_ms + self.patience_ms

    def _first_tick(self, carried: Carried) -> int:
        """The first tick that has not run."""
        if carried.until_ms is None:
            return self.ticks.start_ms + self.ticks.interval_ms
        return self.ticks.after(carried.until_ms - 1)

    def _seen(self, ticks: Longs) -> Longs:
        """The first instants of some ticks."""
        return ticks.astype(object) * self._axis.scale if self._axis.sequenced else ticks


def _newcomers(known: Sequence[Channel], first: pd.DataFrame) -> list[Channel]:
    """The channels that are heard for the first time, by first record, then by name."""
    names = {channel.name for channel in known}
    rows = sorted(
        (int(instant), int(sequence), int(ts), str(name))
        for name, instant, sequence, ts in zip(
            first["channel"], first["instant"], first["sequence"], first["ts_ms"], strict=True
        )
        if name not in names
    )
    return [Channel(name, joined=instant) for instant, _, _, name in rows]


def _until(
    channel: Channel, heard: pd.DataFrame | None, at_once: pd.DataFrame | None, until_ms: int
) -> tuple[_Heard, Channel]:
    """What a channel did until an instant, what was pending with it; and what is pending then."""
    ticks = before = candidates = np.zeros(0, dtype=np.int64)
    if heard is not None:
        rows = heard.sort_values("tick_ms")
        ticks = rows["tick_ms"].to_numpy(dtype=np.int64)
        before = rows["before_ms"].fillna(_BELOW_ALL).to_numpy(dtype=np.int64)
        candidates = rows["candidate_ms"].fillna(MIN_WATERMARK).to_numpy(dtype=np.int64)
    earlier = _BELOW_ALL if channel.heard_ms is None else channel.heard_ms
    if channel.pending_ms is not None:
        offer = channel.pending_candidate_ms
        offer = MIN_WATERMARK if offer is None else offer
        if len(ticks) and ticks[0] == channel.pending_ms:
            candidates[0] = max(int(candidates[0]), offer)
        else:
            ticks = np.insert(ticks, 0, channel.pending_ms)
            before = np.insert(before, 0, earlier)
            candidates = np.insert(candidates, 0, offer)
            earlier = channel.pending_ms
            before[1:2] = earlier
    before[:1] = channel.heard_ms if channel.heard_ms is not None else _BELOW_ALL
    shown = int(np.searchsorted(ticks, until_ms))
    pending = shown < len(ticks)
    # of the ticks that move nothing only the one before a tick that does is known
    last = int(before[shown]) if pending else int(ticks[-1]) if shown else _BELOW_ALL
    heard_ms = channel.heard_ms if last == _BELOW_ALL else last
    after = replace(
        channel,
        heard_ms=heard_ms,
        pending_ms=int(ticks[shown]) if pending else None,
        pending_candidate_ms=int(candidates[shown]) if pending else None,
    )
    offers = (np.zeros(0, dtype=np.int64),) * 2
    if at_once is not None:
        rows = at_once.sort_values("seen_from")
        offers = (rows["seen_from"].to_numpy(), rows["candidate_ms"].to_numpy(dtype=np.int64))
    return _Heard(ticks[:shown], before[:shown], candidates[:shown], offers, heard_ms), after


@dataclass(frozen=True)
class _Happened:
    """What happened to the channels, by position; at one, in the order of the ranks."""

    seen_from: Longs
    rank: Longs
    channel: Longs
    kind: Longs
    value: Longs

    @classmethod
    def of(
        cls, seen_from: Longs, rank: int, channel: int, kind: int, value: Longs | None = None
    ) -> _Happened:
        """The events of one kind, of one channel."""
        length = len(seen_from)
        return cls(
            seen_from,
            np.full(length, rank),
            np.full(length, channel),
            np.full(length, kind, dtype=np.int8),
            np.full(length, MIN_WATERMARK) if value is None else value,
        )

    @classmethod
    def together(cls, parts: Sequence[_Happened]) -> _Happened:
        """All events, in order."""
        every = [cls.of(np.zeros(0, dtype=np.int64), 0, 0, JOIN), *parts]
        names = [column.name for column in fields(cls)]
        happened = cls(*(np.concatenate([getattr(p, name) for p in every]) for name in names))
        return happened.where(happened.order)

    def where(self, chosen: Longs) -> _Happened:
        """Some of the events, by place or by a mask."""
        return _Happened(*(getattr(self, column.name)[chosen] for column in fields(self)))

    @property
    def order(self) -> Longs:
        """The places in order."""
        if self.seen_from.dtype != object:
            return np.lexsort((self.rank, self.seen_from))
        keys = list(zip(self.seen_from.tolist(), self.rank.tolist(), strict=True))
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)

    @property
    def events(self) -> Events:
        """As the combiners take them."""
        same = (self.seen_from[1:] == self.seen_from[:-1]) & (self.rank[1:] == self.rank[:-1])
        last = np.append(~same.astype(bool), True)[: len(self.kind)]
        return Events(self.channel, self.kind, self.value, last)


def _steps(
    seen_from: Longs, rank: Longs, watermark_ms: Longs, until: Longs | None = None
) -> pd.DataFrame:
    """Steps as rows; the arrival day that they are kept with is not known here."""
    columns = (None, seen_from, seen_from if until is None else until, rank, watermark_ms)
    return pd.DataFrame(dict(zip(STEP_COLUMNS, columns, strict=True)))


def _raises_only(happened: _Happened, channels: Sequence[Channel]) -> Longs:
    """Which events stay: offers that are not higher than the channel's last are swallowed.

    Flink: `WatermarkEmitter`; an idle channel stays idle then.
    """
    kept: Longs = happened.kind != RAISE
    for number, channel in enumerate(channels):
        own = np.flatnonzero((happened.kind == RAISE) & (happened.channel == number))
        values = happened.value[own]
        largest = np.maximum.accumulate(np.append(channel.watermark_ms, values))
        kept[own] = values > largest[:-1]
    return kept


def _channels(carried: Carried, channels: Sequence[Channel]) -> Channels:
    """The channels as arrays; newcomers have not joined yet."""
    there = len(carried.channels)
    return Channels(
        np.array([channel.watermark_ms for channel in channels], dtype=np.int64),
        np.array([c.active and i < there for i, c in enumerate(channels)], dtype=bool),
        np.array([channel.been_idle for channel in channels], dtype=bool),
        carried.combined_ms,
    )


def _instant(channel: Channel) -> int:
    return channel.joined or 0


def _ms(channel: Channel, axis: Axis) -> int:
    return axis.arrival_of(_instant(channel))
