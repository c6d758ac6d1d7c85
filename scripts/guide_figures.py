"""The figures of the guide, as the record-by-record reference computes them.

python scripts/guide_figures.py    # writes each anew where docs/*.md has `<!-- figure: NAME -->`

A test fails where a figure in the docs is not what this makes of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from strandline.model.lateness import MIN_WATERMARK
from strandline.reference.answer import Firing, LateRecord, Replay
from strandline.reference.joins import Pair, replay_interval_join, replay_windows_of_two
from strandline.reference.records import Record, without_duplicates
from strandline.reference.replay import replay
from strandline.reference.tables import Tables
from strandline.spec import PipelineSpec, parse_any, parse_spec
from strandline.spec.join import IntervalJoinSpec, WindowJoinSpec
from strandline.spec.runnable import AnySpec

DOCS = Path(__file__).parents[1] / "docs"
_MINUTE = 60_000
_Told = TypeVar("_Told", Firing, Pair)
_BLOCK = re.compile(r"(<!-- figure: (\w+) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def drawn(page: str) -> str:
    """A page with its figures drawn anew."""
    return _BLOCK.sub(lambda block: block[1] + FIGURES[block[2]]() + block[4], page)


def _watermarks() -> str:
    """The combined watermark after each of some records, strategy by strategy."""
    told = [("12:01", "12:00"), ("12:03", "12:02"), ("12:07", "11:58"), ("12:08", "12:07", True)]
    records = [
        replace(record, candidate_ms=record.ts_ms - 30 * _MINUTE)
        for record in _records([*told, ("12:20", "12:19")])
    ]
    strategies = {
        "bounded 10m": {"strategy": "bounded_out_of_orderness", "bound": "10m"},
        "legacy bounded 10m": {"strategy": "legacy_bounded_out_of_orderness", "bound": "10m"},
        "ascending": {"strategy": "ascending"},
        "legacy ascending": {"strategy": "legacy_ascending"},
        "punctuated": {"strategy": "punctuated", "marker": "marker"},
        "expression": {"strategy": "expression", "candidate": "happened - INTERVAL 30 MINUTES"},
        "time lag 10m": {"strategy": "time_lag", "lag": "10m"},
        "ingestion": {"strategy": "ingestion"},
        "none": {"strategy": "none"},
    }
    rows = [["event time", *(_clock(r.ts_ms) + " marked" * r.marker for r in records)]]
    for name, one in strategies.items():
        answer = replay(_spec(watermark={**one, "emit": "per_record"}), records, start_ms=0)
        rows.append([name, *_after(records, answer)])
    return _table(["arrival", *(_clock(r.arrival_ms) for r in records)], rows)


def _after(records: Sequence[Record], told: Replay) -> list[str]:
    def at(record: Record) -> int:
        known = (e for e in told.watermarks if e.origin.at_ms <= record.arrival_ms)
        return max((emission.watermark_ms for emission in known), default=MIN_WATERMARK)

    return [_watermark(at(record)) for record in records]


def _emission() -> str:
    """When what the same records offer becomes visible."""
    records = _records([("12:01", "12:00"), ("12:03", "12:02"), ("12:20", "12:19")])
    emissions: dict[str, Any] = {
        "per_record": "per_record",
        "{every: 10m}": {"every": "10m"},
        "{every: 0ms}": {"every": "0ms"},
    }
    rows = []
    for name, emit in emissions.items():
        spec = _spec(watermark={"strategy": "ascending", "emit": emit})
        told = replay(spec, records, start_ms=0, horizon_ms=_ms("12:31"))
        seen = [
            f"{_watermark(e.watermark_ms)} at {_clock(e.origin.at_ms)}" for e in told.watermarks
        ]
        rows.append([name, ", ".join(seen) or "none before the end of the input"])
    return _table(["emit", "the watermark advances to"], rows)


def _idleness() -> str:
    """A channel that falls silent and comes back behind: without idleness, valve, splits."""
    spoken = [("b", minute, 0) for minute in range(1, 16)]
    spoken += [("a", 1, 0), ("a", 2, 0), ("a", 9, 5), ("a", 12, 0), ("a", 13, 0)]
    records = [
        Record(
            (12 * 60 + at) * _MINUTE,
            (12 * 60 + at - behind) * _MINUTE,
            f"{at:02}{channel}",
            channel,
        )
        for channel, at, behind in spoken
    ]
    ways: dict[str, dict[str, Any]] = {
        "no idleness": {},
        "idleness 3m, valve": {"idleness": "3m"},
        "idleness 3m, splits": {"idleness": "3m", "combine": "splits"},
    }
    source = {"channel": "channel", "channels": ["a", "b"]}
    ticks = [(12 * 60 + minute) * _MINUTE for minute in range(2, 15)]
    columns = []
    for way in ways.values():
        watermark = {"strategy": "ascending", "emit": {"every": "1m"}, **way}
        told = replay(
            _spec(source=source, watermark=watermark),
            records,
            start_ms=_ms("12:00"),
            horizon_ms=_ms("12:15"),
        )
        columns.append([_at(told, tick) for tick in ticks])
    came = [
        " ".join(
            f"{r.channel} {_clock(r.ts_ms)}"
            for r in sorted(records, key=lambda r: r.channel)
            if tick - _MINUTE <= r.arrival_ms < tick
        )
        for tick in ticks
    ]
    rows = ([_clock(t), *row] for t, *row in zip(ticks, came, *columns, strict=True))
    return _table(["tick", "records since the last", *ways], rows)


def _at(told: Replay, tick_ms: int) -> str:
    known = [e.watermark_ms for e in told.watermarks if e.origin.at_ms <= tick_ms]
    return _watermark(max(known, default=MIN_WATERMARK))


def _windows() -> str:
    """The windows of the same records, kind by kind."""
    gaps = {"10:05": 90, "10:15": 10, "10:25": 15, "11:10": 10, "11:20": 20}
    records = [
        replace(record, gap_ms=gap * _MINUTE)
        for record, gap in zip(_records([(at, at) for at in gaps]), gaps.values(), strict=True)
    ]
    first, last = _ms("9:20"), _ms("12:20")
    lines = [_axis(first, last), _marks(first, [record.ts_ms for record in records])]
    kinds: list[dict[str, Any]] = [
        {"tumbling": "1h"},
        {"tumbling": "1h", "offset": "15m"},
        {"sliding": "1h", "every": "30m"},
        {"sliding": "10m", "every": "30m"},
        {"cumulative": "1h", "step": "20m"},
        {"session": "20m"},
        {"session": "45m"},
        {"session": "gap_ms"},
    ]
    for kind in kinds:
        spec = _spec(window=kind, watermark={"strategy": "none"})
        told = replay(spec, records, start_ms=0, end_of_input=True)
        lines.append(", ".join(f"{name}: {value}" for name, value in kind.items()))
        for row in sorted(Tables(spec, told).windows(), key=lambda row: row.window):
            place = " " * _place(first, row.window.start_ms)
            length = (row.window.end_ms - row.window.start_ms) // (5 * _MINUTE)
            lines.append(f"{place}[{str(len(row.members)).center(length - 1, '-')})")
    return "".join(f"{line}\n" for line in lines)


def _place(first_ms: int, instant_ms: int) -> int:
    """A column of a picture in which a sign is five minutes."""
    return (instant_ms - first_ms) // (5 * _MINUTE)


def _axis(first_ms: int, last_ms: int) -> str:
    line = ""
    for instant in range(first_ms, last_ms, 40 * _MINUTE):
        line = line.ljust(_place(first_ms, instant)) + _clock(instant)
    return line


def _marks(first_ms: int, instants: Iterable[int]) -> str:
    line = ""
    for instant in instants:
        line = line.ljust(_place(first_ms, instant)) + "x"
    return line


def _lateness() -> str:
    """What becomes of records of one window as they come later and later."""
    told = [("12:03", "12:02"), ("12:16", "12:15"), ("12:17", "12:08"), ("12:26", "12:25")]
    records = _records([*told, ("12:27", "12:09"), ("12:36", "12:35"), ("12:37", "12:04")])
    spec = _spec(
        watermark={"strategy": "bounded_out_of_orderness", "bound": "5m", "emit": "per_record"},
        window={"tumbling": "10m"},
        allowed_lateness="15m",
    )
    answer = replay(spec, records, start_ms=0)
    fired = {id(f): f for f in answer.firings if f.window.start_ms == _ms("12:00")}
    before = ["none yet", *_after(records, answer)]
    rows = []
    for record, met in zip(records, before[:-1], strict=True):
        if record.ts_ms >= _ms("12:10"):
            became = "is of a later window"
        else:
            became = "late" if any(late.record == record for late in answer.late) else "accepted"
        firings = [
            f"{f.timing.value} with {len(f.members)}"
            for f in fired.values()
            if f.origin.at_ms == record.arrival_ms
        ]
        rows.append([_clock(record.arrival_ms), _clock(record.ts_ms), met, became, *firings[:1]])
    return _table(
        ["arrival", "event time", "watermark then", "it is", "[12:00, 12:10) fires"], rows
    )


def _triggers() -> str:
    """What one window fires, trigger by trigger, as its records come."""
    triggers: dict[str, dict[str, Any]] = {
        "event_time": {},
        "continuous: 3m": {"trigger": {"continuous": "3m"}},
        "event_time, purging": {"trigger": {"event_time": {}, "purging": True}},
        "count: 2": {"trigger": {"count": 2}},
        "count: 2, purging": {"trigger": {"count": 2, "purging": True}},
    }
    return _fired_by(triggers)


def _evictors() -> str:
    """What the same window has left as it fires, evictor by evictor."""
    evictors: dict[str, dict[str, Any]] = {
        "none": {},
        "count: 2": {"evictor": {"count": 2}},
        "count: 2, after": {"evictor": {"count": 2, "after": True}},
        "time: 3m": {"evictor": {"time": "3m"}},
    }
    return _fired_by(evictors)


def _fired_by(ways: Mapping[str, Mapping[str, Any]]) -> str:
    """What the window [12:00, 12:10) fires after each of some records: whom it held."""
    told = [("12:01", "12:01"), ("12:05", "12:04"), ("12:06", "12:02"), ("12:09", "12:08")]
    records = _records([*told, ("12:13", "12:12"), ("12:14", "12:03")])
    names = {record: name for name, record in zip("abcdef", records, strict=True)}

    def held(firing: Firing) -> str:
        return "".join(sorted(names[member] for member in firing.members)) or "nothing"

    columns = []
    for way in ways.values():
        spec = _spec(
            watermark={"strategy": "bounded_out_of_orderness", "bound": "1m", "emit": "per_record"},
            window={"tumbling": "10m"},
            allowed_lateness="5m",
            firings=True,
            **way,
        )
        fired = [
            f
            for f in replay(spec, records, start_ms=0).firings
            if f.window.start_ms == _ms("12:00")
        ]
        columns.append(_brought(records, fired, held, ()))
    watermarks = _after(records, replay(spec, records, start_ms=0))
    rows = [
        [f"{names[record]} {_clock(record.ts_ms)}", _clock(record.arrival_ms), watermark, *held]
        for record, watermark, *held in zip(records, watermarks, *columns, strict=True)
    ]
    return _table(["event time", "arrival", "watermark then", *ways], rows)


def _joins() -> str:
    """What two sources give as their records come: pairs, or what windows over both fire."""
    told = [
        ("12:01", "12:01", "left"),
        ("12:05", "12:04", "right"),
        ("12:07", "12:07", "left"),
        ("12:12", "12:11", "right"),
        ("12:13", "12:13", "left"),
        ("12:14", "12:09", "right"),
        ("12:15", "12:12", "right"),
    ]
    signs = {"left": iter("abc"), "right": iter("1234")}
    names = {
        Record(_ms(at), _ms(ts), f"{number:02}", input=side): next(signs[side])
        for number, (at, ts, side) in enumerate(told)
    }
    within = cast("IntervalJoinSpec", _two({"interval": ["-2m", "5m"]}))
    joined = replay_interval_join(within, names, start_ms=0)
    windows = {"window": {"tumbling": "10m"}, "allowed_lateness": "5m"}
    cogroup, paired = (
        replay_windows_of_two(
            cast("WindowJoinSpec", _two({kind: {}}, **windows)), names, start_ms=0
        )
        for kind in ("cogroup", "window")
    )

    def pair_of(pair: Pair) -> str:
        return names[pair.left] + names[pair.right]

    def both_sides(firing: Firing) -> str:
        left, right = _sides(firing, names)
        return f"{''.join(left) or '-'} and {''.join(right) or '-'}"

    def all_pairs(firing: Firing) -> str:
        left, right = _sides(firing, names)
        return " ".join(one + other for one in left for other in right)

    columns = {
        "watermark then": _after(list(names), cogroup),
        "interval: [-2m, 5m]": _brought(names, joined.pairs, pair_of, joined.late),
        "cogroup": _brought(names, cogroup.firings, both_sides, cogroup.late),
        "window": _brought(names, paired.firings, all_pairs, paired.late),
    }
    rows = [
        [f"{record.input} {name}", _clock(record.ts_ms), _clock(record.arrival_ms), *told]
        for (record, name), *told in zip(names.items(), *columns.values(), strict=True)
    ]
    return _table(["record", "event time", "arrival", *columns], rows)


def _sides(firing: Firing, names: Mapping[Record, str]) -> tuple[list[str], list[str]]:
    """The left and the right records that a firing held."""
    left, right = (
        sorted(names[member] for member in firing.members if member.input == side)
        for side in ("left", "right")
    )
    return left, right


def _brought(
    records: Iterable[Record],
    told: Sequence[_Told],
    shown: Callable[[_Told], str],
    late: Iterable[LateRecord],
) -> list[str]:
    """What each record, or the watermark that it raised, has brought; or that it was late."""
    refused = {one.record for one in late}
    return [
        ", ".join(shown(one) for one in told if one.origin.at_ms == record.arrival_ms)
        or "late" * (record in refused)
        for record in records
    ]


def _two(join: Mapping[str, Any], **changed: Any) -> AnySpec:
    """A join of two sources whose watermarks are a minute behind."""
    side = {
        "table": "t",
        "arrival_time": "arrived",
        "event_time": "happened",
        "watermark": {"strategy": "bounded_out_of_orderness", "bound": "1m", "emit": "per_record"},
    }
    content = {
        "pipeline": "figure",
        "sources": {"left": side, "right": side},
        "join": join,
        **changed,
    }
    return parse_any(content, origin="guide_figures.py")


def _duplicates() -> str:
    """One record that is delivered again and again, under `within: 1h of arrival`."""
    arrivals = ["12:00", "12:40", "13:20", "14:20", "14:20", "16:00"]
    records = [Record(_ms(at), 0, str(number)) for number, at in enumerate(arrivals)]
    kept, _ = without_duplicates(records, lambda _: 0, within_ms=60 * _MINUTE)
    rows = []
    for record, before in zip(records, [None, *records], strict=False):
        pause = (
            "" if before is None else f"{(record.arrival_ms - before.arrival_ms) // _MINUTE} min"
        )
        rows.append([_clock(record.arrival_ms), pause, "counts" if record in kept else "duplicate"])
    return _table(["arrival", "after the one before", "it"], rows)


FIGURES: dict[str, Callable[[], str]] = {
    "watermarks": _watermarks,
    "emission": _emission,
    "idleness": _idleness,
    "windows": _windows,
    "lateness": _lateness,
    "triggers": _triggers,
    "evictors": _evictors,
    "joins": _joins,
    "duplicates": _duplicates,
}


def _spec(**changed: Any) -> PipelineSpec:
    source = {"table": "t", "arrival_time": "arrived", "event_time": "happened"}
    content = {
        "pipeline": "figure",
        "watermark": {"strategy": "ascending"},
        "window": {"tumbling": "1h"},
        **changed,
        "source": {**source, **changed.get("source", {})},
    }
    return parse_spec(content, origin="guide_figures.py")


def _records(told: Iterable[tuple[Any, ...]]) -> list[Record]:
    """Records by arrival, event time and, if given, whether they are marked."""
    return [
        Record(_ms(at), _ms(ts), f"{number:02}", marker=bool(marker))
        for number, (at, ts, *marker) in enumerate(told)
    ]


def _ms(clock: str) -> int:
    hours, minutes = clock.split(":")
    return (int(hours) * 60 + int(minutes)) * _MINUTE


def _clock(instant_ms: int) -> str:
    minutes = instant_ms // _MINUTE
    return f"{minutes // 60}:{minutes % 60:02}"


def _watermark(watermark_ms: int) -> str:
    """A watermark; `<12:00` is the millisecond before."""
    if watermark_ms == MIN_WATERMARK:
        return "none yet"
    return ("<" if (watermark_ms + 1) % _MINUTE == 0 else "") + _clock(watermark_ms + 1)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [[*row, *[""] * (len(head) - len(row))] for row in (head, *rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    shown = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
    shown.insert(1, "  ".join("-" * width for width in widths))
    return "".join(f"{line.rstrip()}\n" for line in shown)


def main() -> int:
    """Draw the figures of every page anew."""
    for path in sorted(DOCS.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        path.write_text(drawn(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
