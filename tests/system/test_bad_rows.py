"""Rows of every bad sort, many of them: each is in a window or in quarantine, and in one book."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake
from kills import Home

pytestmark = [pytest.mark.system, pytest.mark.kill]

ROWS = int(os.environ.get("ROWS", "1000000"))
DAYS = 5
FIRST = datetime(2024, 3, 1, tzinfo=UTC)
DAY = 86_400
EVENT, ARRIVAL, CHANNEL, KEY, AMOUNT = (
    "happened at",
    "arrived.at",
    "sou`rce",
    "de\"vi'ce",
    "amount; DROP TABLE windows --",
)
ODD_TIMES = (
    *(
        "",
        " ",
        "yesterday",
        "2024-13-45",
        "NaN",
        "0001-01-01",
        "0000-00-00",
        "9999-12-31T23:59:59Z",
    ),
    *("10000-01-01T00:00:00Z", "+294247-01-10T04:00:54Z", "-290308-12-21"),
    *(
        "2090-01-01T00:00:00Z",
        "1970-01-01",
        "2024-03-02T10:00:00+14:00",
        "'; DROP TABLE x; --",
        "\x00",
        "x" * 100_000,
    ),
)
ODD_NAMES = ("", " ", "🛩", "a'b", 'a"b', "a`b", "a.b", "\u202e", "x" * 50_000, "NULL", "a\nb")
"""Of channels, which are not declared, and of keys, which may be anything."""
SPEC = {
    "pipeline": "meter",
    "source": {
        "table": "landing/meter",
        "arrival_date": "arrived_on",
        "arrival_time": f"`{ARRIVAL}`",
        "event_time": EVENT,
        "channel": CHANNEL,
        "channels": ["a", "b"],
        "key": {"device": f"`{KEY}`"},
        "valid": f"`{AMOUNT}` >= 0",
        "max_ahead": "1d",
        "deduplicate": {"columns": ["number"], "within": "1d of arrival"},
    },
    "watermark": {
        "strategy": "bounded_out_of_orderness",
        "bound": "30m",
        "emit": {"every": "200ms"},
    },
    "window": {"tumbling": "1h"},
    "allowed_lateness": "1h",
    "aggregates": {"total": f"sum(`{AMOUNT}`)"},
    "quality": {"max_late_share": 1.0},
}


def some_of(random: np.random.Generator, share: float) -> np.ndarray:
    return random.random(ROWS) < share


def bad_rows() -> pa.Table:
    """Good rows for the most part, with all that can be wrong strewn among them."""
    random = np.random.default_rng(1)
    arrived = random.integers(0, DAYS * DAY, ROWS)
    happened = arrived - random.integers(0, 1800, ROWS)
    late = some_of(random, 0.02)
    happened[late] -= random.integers(0, 3 * DAY, late.sum())
    at = (np.datetime64("2024-03-01T00:00:00") + happened.astype("timedelta64[s]")).astype(str)
    event = np.char.add(at, "Z").astype(object)
    odd = some_of(random, 0.05)
    event[odd] = random.choice(np.array(ODD_TIMES, object)[:-1], odd.sum())
    event[random.integers(0, ROWS, 20)] = ODD_TIMES[-1]
    event[some_of(random, 0.03)] = None
    channel = random.choice(np.array(["a", "b"], object), ROWS)
    key = random.choice(np.array(["d1", "d2", "d3"], object), ROWS)
    for names in (channel, key):
        odd = some_of(random, 0.01)
        names[odd] = random.choice(np.array([*ODD_NAMES, None], object), odd.sum())
        huge = np.array([n is not None and len(n) > 100 for n in names])
        names[np.flatnonzero(huge)[20:]] = None
    instants = np.datetime64("2024-03-01T00:00:00", "us") + (arrived * 10**6).astype("m8[us]")
    days = (np.datetime64("2024-03-01") + (arrived // DAY).astype("timedelta64[D]")).astype(object)
    instants[some_of(random, 0.02)] = np.datetime64("NaT")
    elsewhere = some_of(random, 0.02)
    instants[elsewhere] += random.integers(-400, 400, elsewhere.sum()).astype("m8[D]")
    amount = random.integers(-2, 100, ROWS).astype(object)
    amount[some_of(random, 0.01)] = None
    number = np.where(some_of(random, 0.05), random.integers(0, 1000, ROWS), np.arange(ROWS))
    return pa.table(
        {
            EVENT: pa.array(event, pa.string()),
            ARRIVAL: pa.array(instants, pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
            CHANNEL: pa.array(channel, pa.string()),
            KEY: pa.array(key, pa.string()),
            AMOUNT: pa.array(amount, pa.int64()),
            "number": pa.array(number, pa.int64()),
            "arrived_on": pa.array(days, pa.date32()),
        }
    )


def test_of_a_million_bad_rows_each_is_in_a_window_or_in_quarantine(tmp_path):
    home, rows = Home(tmp_path), bad_rows()
    (tmp_path / "meter.yaml").write_text(yaml.safe_dump(SPEC))
    write_deltalake(
        str(tmp_path / "lake/landing/meter"), rows, partition_by=["arrived_on"], mode="append"
    )
    home.run(("backfill", "--start", "0001-01-01", "--end", "9999-12-31", "--close"))

    published = {name: DeltaTable(str(home.root / name)) for name in ("windows", "quarantine")}
    windows = published["windows"].to_pyarrow_table(columns=["records"])
    quarantine = published["quarantine"].to_pyarrow_table(columns=["reason", "record_id"])
    in_windows = pc.sum(windows["records"]).as_py()
    reasons = Counter(quarantine["reason"].to_pylist())
    assert in_windows + quarantine.num_rows == ROWS, reasons
    assert len(pc.unique(quarantine["record_id"])) == quarantine.num_rows
    assert {*reasons} == {
        *("null_event_time", "unparsable_event_time", "null_arrival"),
        *("arrival_outside_partition", "ahead_of_arrival", "null_channel", "undeclared_channel"),
        *("null_key", "invalid", "duplicate", "late"),
    }
    books = [book for entry in home.ledger() for book in entry.books or ()]
    assert books
    assert all(book.balanced for book in books)
    of_days = {b.name: b.total for b in books if b.name.startswith("arrival day")}
    assert sum(of_days.values()) == ROWS
