"""An interval join on a real lake, and what a record-by-record replay of it says."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from lakes import Line, a_week, instant, land, ms
from replayed import reason_of

from strandline.model.lateness import MIN_WATERMARK
from strandline.reference.joins import replay_interval_join, replay_windows_of_two
from strandline.reference.records import Record
from strandline.reference.tables import Tables
from strandline.spec import parse_any, parse_spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]
SIDE: dict[str, Any] = {
    "arrival_date": "arrived_on",
    "arrival_time": "arrived_at",
    "event_time": "happened_at",
    "channel": "source",
    "channels": ["a", "b"],
    "key": ["device"],
}
# both fall idle at night, the one after the other, and come back in the morning
JOIN: dict[str, Any] = {
    "pipeline": "near",
    "sources": {
        "left": SIDE
        | {
            "table": "landing/left",
            "watermark": {
                "strategy": "bounded_out_of_orderness",
                "bound": "30m",
                "emit": {"every": "1m"},
                "idleness": "1h",
            },
        },
        "right": SIDE
        | {
            "table": "landing/right",
            "watermark": {
                "strategy": "bounded_out_of_orderness",
                "bound": "10m",
                "emit": {"every": "5m"},
                "idleness": "2h",
            },
        },
    },
    "join": {"interval": ["-10m", "45m"], "upper_inclusive": False},
    "quality": {"gaps": "allow"},
    "spark": {"spark.sql.shuffle.partitions": "2"},
}
COGROUP = JOIN | {
    "pipeline": "both",
    "join": {"cogroup": {}},
    "window": {"tumbling": "1h"},
    "allowed_lateness": "30m",
    "aggregates": {
        "ours": "count(CASE WHEN input = 'left' THEN 1 END)",
        "theirs": "count(CASE WHEN input = 'right' THEN 1 END)",
    },
}
PAIRED = COGROUP | {
    "pipeline": "paired",
    "join": {"window": {}},
    "aggregates": {
        "ours": "count(DISTINCT left_position)",
        "theirs": "count(DISTINCT right_position)",
    },
}
_HOUR_MS = 3_600_000


class Join:
    """A join of two landing tables on a lake."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        content: Mapping[str, Any] = JOIN,
        sides: Mapping[str, Rows] | None = None,
    ) -> None:
        self.content = deepcopy(dict(content))
        self.line = Line(spark, folder, parse_spec(self.content, origin="near.yaml"))
        self.sides = sides or {"left": a_week(1, days=4), "right": a_week(2, days=4)}
        for name, rows in self.sides.items():
            land(folder, rows, table=f"landing/{name}")

    def records(self) -> list[Record]:
        """The well-formed records of both sides."""
        return [
            Record(
                arrival_ms=ms(row["arrived_at"]),
                ts_ms=ms(row["happened_at"]),
                record_id=f"{name} {place:06d}",
                channel=row["source"],
                key=(row["device"],),
                input=name,
                payload=row,
            )
            for name, side in self.line.spec.sides.items()
            for place, row in enumerate(self.sides[name])
            if reason_of(row, side) is None
        ]

    def told(self, horizon: str) -> dict[str, list[Any]]:
        """The tables as of a horizon, by the reference."""
        spec = parse_any(self.content, origin="near.yaml")
        horizon_ms, records = instant(horizon), self.records()
        answer = replay_interval_join(spec, records, start_ms=instant("1"), horizon_ms=horizon_ms)
        late = {(one.record.input, one.record.payload["position"]) for one in answer.late}
        return {
            "pairs": sorted(
                (pair.ts_ms, pair.left.payload["position"], pair.right.payload["position"])
                for pair in answer.pairs
            ),
            "quarantine": sorted(
                [
                    *(
                        (
                            *(one.record.input, one.record.payload["position"], "late"),
                            *(one.watermark_ms, one.watermark_ms - one.record.ts_ms),
                        )
                        for one in answer.late
                    ),
                    *(
                        (name, row["position"], reason_of(row, side), None, None)
                        for name, side in self.line.spec.sides.items()
                        for row in self.sides[name]
                        if reason_of(row, side) and str(row["arrived_on"]) < _day(horizon)
                    ),
                ],
                key=str,
            ),
            "completeness": _calendar(
                [record for record in records if record.arrival_ms < horizon_ms],
                late,
                answer.final_watermark_ms,
            ),
        }

    def found(self) -> dict[str, list[Any]]:
        """What is published."""
        return {
            "pairs": sorted(
                (ms(row["pair_ts"]), row["left_position"], row["right_position"])
                for row in self.line.rows("pairs")
            ),
            "quarantine": sorted(
                (
                    tuple(
                        row[name]
                        for name in ("input", "position", "reason", "watermark_ms", "late_by_ms")
                    )
                    for row in self.line.rows("quarantine")
                ),
                key=str,
            ),
            "completeness": sorted(
                (ms(row["slot_start"]), row["state"], row["on_time"], row["late"])
                for row in self.line.rows("completeness")
            ),
        }

    def told_of_windows(self, horizon: str) -> dict[str, list[Any]]:
        """The windows over both, what is late for them, and their calendar, by the reference."""
        tables, calendar = (
            self._tables(content, horizon)
            for content in (self.content, self.content | {"join": {"cogroup": {}}})
        )
        return {
            **self._pairs_of(tables),
            "windows": sorted(
                (row.window.start_ms, row.key[0], row.state, *_by_input(row.members))
                for row in tables.windows()
            ),
            "late": sorted(
                (row.record.input, row.record.payload["position"], row.watermark_ms)
                for row in tables.quarantine()
            ),
            "completeness": sorted(
                (row.window.start_ms, row.slot.state, row.on_time, row.late_accepted, row.late)
                for row in calendar.completeness()  # of records, whether they have a pair or none
            ),
        }

    def _tables(self, content: Mapping[str, Any], horizon: str) -> Tables:
        """The tables of windows over both, by the reference."""
        replayed = replay_windows_of_two(
            parse_any(content, origin="near.yaml"),
            self.records(),
            start_ms=instant("1"),
            horizon_ms=instant(horizon),
        )
        return Tables(parse_spec(content, origin="near.yaml"), replayed)

    def found_of_windows(self) -> dict[str, list[Any]]:
        """The same, as published."""
        pairs = [
            (ms(r["window_start"]), ms(r["pair_ts"]), r["left_position"], r["right_position"])
            for r in (self.line.rows("pairs") if self._tells_pairs else ())
        ]
        return {
            **({"pairs": sorted(pairs)} if self._tells_pairs else {}),
            "windows": sorted(
                (ms(row["window_start"]), row["device"], row["state"], row["ours"], row["theirs"])
                for row in self.line.rows("windows")
            ),
            "late": sorted(
                (row["input"], row["position"], row["watermark_ms"])
                for row in self.line.rows("quarantine")
                if row["reason"] == "late"
            ),
            "completeness": sorted(
                (
                    *(ms(row["slot_start"]), row["state"]),
                    *(row[name] for name in ("on_time", "late_accepted", "late")),
                )
                for row in self.line.rows("completeness")
                if not row["gap"]
            ),
        }

    @property
    def _tells_pairs(self) -> bool:
        return self.line.spec.has_pairs_of_windows

    def _pairs_of(self, tables: Tables) -> dict[str, list[Any]]:
        """The pairs of each window's last firing, where the pipeline publishes them."""
        if not self._tells_pairs:
            return {}
        told = [
            (
                *(row.window.start_ms, max(left.ts_ms, right.ts_ms)),
                *(left.payload["position"], right.payload["position"]),
            )
            for row in tables.windows()
            for left in row.members
            for right in row.members
            if (left.input, right.input) == ("left", "right")
        ]
        return {"pairs": sorted(told)}


def _by_input(members: Iterable[Record]) -> tuple[int, int]:
    inputs = [member.input for member in members]
    return inputs.count("left"), inputs.count("right")


def _calendar(
    records: Iterable[Record], late: set[tuple[str, Any]], watermark_ms: int
) -> list[tuple[Any, ...]]:
    counts: dict[int, list[int]] = {}
    for record in records:
        slot = counts.setdefault(record.ts_ms - record.ts_ms % _HOUR_MS, [0, 0])
        slot[(record.input, record.payload["position"]) in late] += 1
    return sorted((slot, _state(slot, watermark_ms), *both) for slot, both in counts.items())


def _state(slot: int, watermark_ms: int) -> str:
    end_ms = slot + _HOUR_MS
    if watermark_ms == MIN_WATERMARK or watermark_ms < end_ms - 1:
        return "open"
    return "closed" if watermark_ms >= end_ms else "fired"


def _day(horizon: str) -> str:
    return f"2024-03-{int(horizon.split(maxsplit=1)[0]):02d}"
