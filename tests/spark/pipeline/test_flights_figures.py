"""The flights of 2013 against the oracle, which shares no line with Strandline: row for row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from flights_reference import Answer
from lakes import Line
from replayed_flights import replayed_flights

from strandline.spec import load_spec
from strandline.spec.values import parse_instant

pytestmark = pytest.mark.spark

PIPELINES = Path(__file__).parents[3] / "pipelines"
SPEC = load_spec(PIPELINES / "flights.yaml")
ALIKE = ["departures", "total_miles", "longest_air_time_min", "records", "late_accepted", "firings"]
IN_MS = {name: f"{name}_ms" for name in ("window_start", "window_end", "fired_at", "closed_at")}
LATE = ["departed_at", "landed_at", "origin", "carrier", "flight", "tailnum", "slot_start"]
LATE += ["watermark_ms", "late_by_ms"]
SLOT = ["slot_start", "slot_end", "state", "fired_at", "closed_at", "on_time", "late_accepted"]
SLOT += ["late", "channels_heard"]


@pytest.fixture(scope="module", autouse=True)
def generated_code(spark):
    """Real input runs the code that Spark generates, as users run it."""
    names = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    before = {name: spark.conf.get(name) for name in names}
    for name in names:
        spark.conf.unset(name)
        assert spark.conf.get(name) in {"true", "FALLBACK"}
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def line(spark, own_flights_lake):
    return Line(spark, own_flights_lake, SPEC)


def table(line: Line, name: str) -> pa.Table:
    """The rows of a table's files, which leave out its partition, with times in ms since 1970."""
    files = line.table(name).file_uris()
    rows = (pq.read_table(file, partitioning=None) for file in files)
    found = pa.concat_tables(rows, promote_options="default")  # not all have them in one order
    for place, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            micros = found[field.name].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
            found = found.set_column(place, field.name, pc.divide(micros, 1000))
    return found


def assert_tables_say(line: Line, answer: Answer) -> None:
    """Every row of windows, quarantine and completeness is the oracle's, and none is missing."""
    windows = table(line, "windows").sort_by(
        [(name, "ascending") for name in ("window_start", "origin", "carrier")]
    )
    names = [*IN_MS, "origin", "carrier", "state", *ALIKE]
    theirs = [IN_MS.get(name, name) for name in names]
    expected = [tuple(row[name] for name in theirs) for row in answer.windows]
    assert list(zip(*(windows[name].to_pylist() for name in names), strict=True)) == expected
    means = [row["mean_delay_min"] for row in answer.windows]
    np.testing.assert_allclose(windows["mean_delay_min"].to_numpy(), means, rtol=1e-12)

    quarantine = table(line, "quarantine").to_pylist()
    late = [tuple(row[name] for name in LATE) for row in quarantine if row["reason"] == "late"]
    assert sorted(late, key=repr) == sorted((tuple(row.values()) for row in answer.late), key=repr)
    assert len({row["record_id"] for row in quarantine}) == len(quarantine)

    reasons = Counter(
        (str(r["arrival_date"]), r["reason"]) for r in quarantine if not r["slot_start"]
    )
    malformed = ("null_event_time", "null_arrival")
    assert reasons == {
        (day["arrival_date"], reason): day[reason]
        for day in answer.days
        for reason in malformed
        if day[reason]
    }

    slots = [
        tuple(row[name] for name in SLOT)
        for row in table(line, "completeness").sort_by("slot_start").to_pylist()
    ]
    assert slots == [tuple(slot.values()) for slot in answer.slots]


def test_the_year_in_one_go_is_the_oracles_row_for_row(line, oracle):
    outcome = line.backfill("2013-01-01", "2014-01-02")
    answer = oracle()
    assert outcome.horizon_ms == answer.horizon_ms
    counts = answer.counts
    assert outcome.malformed == {
        "null_event_time": counts["null_event_time"],
        "null_arrival": counts["null_arrival"],
    }
    books = {book.name: book for book in outcome.books}
    assert books["range"].total == counts["well_formed"]
    assert books["range"].parts == {
        name: counts[name] for name in ("accepted", "late", "no_window")
    }
    for day in answer.days:
        book = books.pop(f"arrival day {day['arrival_date']}")
        assert book.total == day["landed"]
        assert book.parts["well_formed"] == day["well_formed"]
        assert book.balanced
    assert set(books) == {"range"}
    assert outcome.diff["windows"]["insert"] == counts["windows"]
    assert_tables_say(line, answer)


def test_scheduled_runs_of_a_blizzard_are_the_oracles_at_every_midnight(line, oracle):
    for day in ("2013-02-08", "2013-02-09", "2013-02-11"):  # one day was skipped
        outcome = line.advance(f"{day}T06:00:00Z")
        midnight_ms = parse_instant(day)
        assert outcome.frontier_ms == outcome.horizon_ms == midnight_ms
        assert_tables_say(line, oracle(midnight_ms))


@pytest.mark.parametrize("pipeline", ["flights_sliding", "flights_sessions"])
def test_the_other_windows_of_the_flights_are_published_with_balanced_books(line, pipeline):
    line = replace(line, spec=load_spec(PIPELINES / f"{pipeline}.yaml"), audited=True)
    outcome = line.advance("2013-01-03T06:00:00Z")
    assert outcome.status == line.ledger[-1].step == "published"
    books = {book.name: book for book in outcome.books}
    assert books.keys() >= {"arrival day 2013-01-01", "arrival day 2013-01-02", "range"}
    assert all(book.balanced for book in books.values())
    assert all(book.total for name, book in books.items() if name != "older windows")
    assert line.rows("windows")


def test_hours_that_fire_early_are_those_of_the_reference(line):
    line = replace(line, spec=load_spec(PIPELINES / "flights_early.yaml"))
    outcome = line.advance("2013-01-03T06:00:00Z")
    assert outcome.status == "published"
    expected = Counter(
        (f.window.start_ms, *f.key, f.origin.at_ms, len(f.members), f.timing.name)
        for f in replayed_flights(line.spec, line.folder, parse_instant("2013-01-03")).firings
    )
    found = table(line, "firings").to_pylist()
    names = ("window_start", "origin", "fired_at", "departures", "timing")
    assert Counter(tuple(row[name] for name in names) for row in found) == expected
    assert {timing for *_, timing in expected} >= {"EARLY", "ON_TIME"}
