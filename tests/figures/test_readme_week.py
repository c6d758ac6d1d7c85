"""The week of flights with which the README opens, computed without a line of the library.

That Strandline publishes just what the live job did is held elsewhere, by this same oracle.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from pathlib import Path

from flights_reference import DAY_MS, answer, flights

README = Path(__file__).parents[2] / "README.md"
START, END, THEN = (
    int(dt.datetime(2013, 2, day, tzinfo=dt.UTC).timestamp() * 1000) for day in (4, 11, 15)
)


def test_the_readme_says_what_plain_spark_and_the_live_job_count_of_one_week():
    data, live = flights(), answer(THEN)
    published = {
        (row["window_start_ms"], row["origin"], row["carrier"]): row["departures"]
        for row in live.windows
        if START <= row["window_start_ms"] < END
    }
    late = [row for row in live.late if START <= row["slot_start_ms"] < END]
    by_day = defaultdict(Counter)
    for record in data.records:
        window = data.rules.window_start(record.ts_ms)
        if START <= window < END:
            by_day[window, *record.key][record.arrival_ms // DAY_MS] += 1
    # a batch read keeps every record, whatever withWatermark says
    whole = {key: sum(days.values()) for key, days in by_day.items()}
    # a job a day over what arrived on it, which overwrites the windows that it computes
    daily = {key: days[max(days)] for key, days in by_day.items()}

    def row(name: str, counts: dict) -> str:
        differ = sum(counts[key] != published.get(key) for key in counts)
        assert counts.keys() >= published.keys()
        return f"| {name} | {len(counts):,} | {sum(counts.values()):,} | {differ:,} |"

    text = README.read_text("utf-8")
    assert (
        row(
            "plain Spark, `groupBy(window)` over all that landed, with or without `withWatermark`",
            whole,
        )
        in text
    )
    assert (
        row(
            "plain Spark, a job each night over the day's arrivals that overwrites its windows",
            daily,
        )
        in text
    )
    assert row("**Strandline**", published) in text
    assert f"The {len(late)} flights that the live job dropped as late" in text
