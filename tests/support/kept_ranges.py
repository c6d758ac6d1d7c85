"""Ranges that a run by hand has published by rules of its own, which scheduled runs keep."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from joined import SIDE
from lakes import Line, a_record, a_spec, land
from replayed import of_range

from strandline.spec import parse_spec

TUMBLING, SESSIONS = {"tumbling": "1h"}, {"session": "20m"}
OWN_GAPS = {"session": "60000 * (10 + position % 50)"}
"""A session waits 10 to 59 minutes for the next record; see `replayed`."""
ONE = {"source__channels": ["a"]}
SIX_HOURS = {"allowed_lateness": "6h"}
RANGE = ("1", "3")

ONE_CHANNEL = {name: SIDE[name] for name in SIDE if not name.startswith("channel")}
BOUND = {"strategy": "bounded_out_of_orderness", "bound": "30m"}


def hourly(*days: int) -> list[dict[str, Any]]:
    """A record of each hour of some days, soon after its time; one a day comes four hours late."""
    on_time = [
        a_record(f"{day} {hour:02d}:11", f"{day} {hour:02d}:10")
        for day in days
        for hour in range(24)
    ]
    return [*on_time, *(a_record(f"{day} 14:30", f"{day} 10:20", amount=900) for day in days)]


def numbered(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows that a replay can tell apart."""
    return [
        {**row, "position": crc32(f"{row['arrived_at']} {row['happened_at']}".encode())}
        for row in rows
    ]


def decided(spark, folder, window=TUMBLING, beside=(), **changes: Any) -> Line:
    """Three days by the file; then two of them by a lateness of six hours."""
    line = Line(spark, folder, a_spec(**ONE, window=window, **changes))
    land(folder, [*numbered(*hourly(1, 2, 3)), *beside])
    line.advance("4")
    wider = line.of(a_spec(**ONE, window=window, **changes | SIX_HOURS))
    wider.backfill(*RANGE, overrides=SIX_HOURS, reason="a slow day")
    return line


def late_of(line: Line, *, of: tuple[str, str] = RANGE) -> list[tuple[int, int]]:
    """The positions of the quarantined records of a range, each with its `late_by_ms`."""
    return sorted((r["position"], r["late_by_ms"]) for r in of_range(line.rows("quarantine"), *of))


def slots(line: Line, *, late: bool) -> list[dict[str, Any]]:
    """The slots of the range, with or without how many records were late for each."""
    left_out = set() if late else {"late"}
    rows = of_range(line.rows("completeness"), *RANGE)
    return [{name: row[name] for name in row if name not in left_out} for row in rows]


def a_join(content: dict[str, Any], **changes: Any) -> Any:
    sides = {
        name: ONE_CHANNEL | {"table": f"landing/{name}", "watermark": BOUND}
        for name in ("left", "right")
    }
    return parse_spec(content | {"sources": sides} | changes, origin="both.yaml")


def decided_of_two(spark, folder, content: dict[str, Any]) -> Line:
    """Three days of both by the file; then two of them by a lateness of six hours."""
    line = Line(spark, folder, a_join(content))
    for name in ("left", "right"):
        land(folder, numbered(*hourly(1, 2, 3)), table=f"landing/{name}")
    line.advance("4")
    line.of(a_join(content, **SIX_HOURS)).backfill(*RANGE, overrides=SIX_HOURS, reason="slow")
    return line
