"""The DAGs for real: Airflow, spark-submit and a lake, on the first days of 2013."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from lakes import ms
from replayed_flights import replayed_flights

from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.model.intervals import day_of
from strandline.reference.tables import Tables
from strandline.spec import find_spec

pytestmark = pytest.mark.airflow

THIRD = datetime(2013, 1, 3, 6, tzinfo=UTC)
FOURTH = date(2013, 1, 4)
RANGE = {
    "pipeline": "flights",
    "start": "2013-01-04",
    "end": "2013-01-05",
    "as_of": "2013-01-07",
    "reason": "the tests want that day, with more patience",
    "allowed_lateness": "7h",
}


@contextmanager
def no_report() -> Iterator[None]:
    """What runs meanwhile makes no report, which takes as long as a small run."""
    from strandline_airflow.commands import StrandlineReportOperator

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StrandlineReportOperator, "execute", lambda self, context: "no report")
        yield


def the_connection_says(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.dumps({"conn_type": "spark_connect", "extra": {"engine": engine}})
    monkeypatch.setenv("AIRFLOW_CONN_STRANDLINE_ENGINE", said)


def starts(lake: Path) -> list[datetime]:
    """The starts of the published windows."""
    table = DeltaTable(str(lake / "flights" / "windows")).to_pyarrow_table(columns=["window_start"])
    return sorted(table["window_start"].to_pylist())


def ledger(tables: Path) -> list[dict[str, Any]]:
    """The steps of all runs, oldest first."""
    rows = DeltaTable(str(tables / "runs")).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: row["position"])


def test_a_daily_run_on_sail_and_an_approved_range_on_spark(
    run, answered, own_flights_lake, home, monkeypatch
):
    """One story, since each step costs an engine; the connection says which, or the param does."""
    lake = own_flights_lake
    monkeypatch.setenv("STRANDLINE_LAKE", str(lake))
    the_connection_says("sail", monkeypatch)
    daily = run("strandline_daily_flights", logical_date=THIRD)
    assert daily.tasks == {"advance": "success", "report": "success"}
    assert daily.values["advance"]["status"] == "published"
    assert daily.values["advance"]["frontier"] == "2013-01-03T00:00:00Z"
    assert starts(lake)[-1] < datetime(2013, 1, 3, tzinfo=UTC)

    the_connection_says("connect", monkeypatch)  # to no server: nothing would come of it
    reprocessed, shown = answered(RANGE | {"engine": "spark"}, "Approve")
    assert reprocessed.state == "success"
    assert "2013-01-04" in shown["body"]
    prepared, published = reprocessed.values["prepare"], reprocessed.values["publish"]
    assert (prepared["status"], published["status"]) == ("prepared", "published")
    assert prepared["run_id"] == published["run_id"]
    assert prepared["diff"] == published["diff"]
    assert published["diff"]["windows"]["insert"] > 0
    assert prepared["preview"]["windows"]["added"] == published["diff"]["windows"]["insert"]
    assert len(prepared["preview"]["shown"]) == 100
    assert starts(lake)[-1] >= datetime(2013, 1, 4, 20, tzinfo=UTC)
    assert Path(reprocessed.values["report"]).is_file()

    with no_report():
        again = run("strandline_daily_flights", {"engine": "sail"}, logical_date=THIRD)
    assert again.values["advance"]["status"] == "repeated"
    assert again.values["advance"]["repeats"] == daily.values["advance"]["run_id"]
    assert again.state == "success"

    entries = Ledger(Lake.at(str(lake)).pipeline("flights")).entries()
    engines = {(one.kind, one.driver.engine) for one in entries if one.step == "started"}
    assert engines == {("advance", "sail"), ("backfill", "spark")}
    by_hand = [row for row in ledger(lake / "flights") if row["kind"] == "backfill"]
    assert len({row["run_id"] for row in by_hand}) == 1  # the preview has left no trace
    assert {row["reason"] for row in by_hand} == {RANGE["reason"]}
    who = "airflow: dag_test"
    assert {row["requested_by"] for row in by_hand} == {who, f"{who}, approved by ann"}
    assert {row["overrides"] for row in by_hand} == {'{"allowed_lateness":"7h"}'}
    spec = find_spec(home / "pipelines", "flights", {"allowed_lateness": RANGE["allowed_lateness"]})
    told = Tables(
        spec, replayed_flights(spec, lake, ms(datetime(2013, 1, 7, tzinfo=UTC)))
    ).windows()
    asked_for = DeltaTable(str(lake / "flights" / "windows")).to_pyarrow_table().to_pylist()
    assert Counter(
        (ms(row["window_start"]), row["origin"], row["carrier"], row["records"], row["firings"])
        for row in asked_for
        if row["window_date"] == FOURTH
    ) == Counter(
        (row.window.start_ms, *row.key, len(row.members), row.firings)
        for row in told
        if day_of(row.window.start_ms) == FOURTH
    )


def test_days_of_flights_add_up_what_the_oracle_says_of_their_hours_and_are_reported(
    run, flights_lake, oracle
):
    """Two pipelines in a line: the days go as far as the hours have come."""
    lake, on_sail = flights_lake, {"engine": "sail"}
    with no_report():
        hours = run("strandline_daily_flights_hourly", on_sail, logical_date=THIRD)
        days = run("strandline_daily_flights_daily", on_sail | {"to": "2013-01-09"})
    assert hours.values["advance"]["frontier"] == "2013-01-03T00:00:00Z"
    answer = days.values["advance"]
    assert (answer["status"], answer["frontier"]) == ("published", "2013-01-03T00:00:00Z")
    assert any("source.pipeline has not published all" in note for note in answer["notes"])

    departures: Counter[Any] = Counter()
    for hour in oracle(int(THIRD.replace(hour=0).timestamp() * 1000)).windows:
        day = datetime.fromtimestamp(hour["window_start_ms"] / 1000, UTC).date()
        departures[day, hour["origin"]] += hour["departures"]
    table = DeltaTable(str(lake / "flights_daily" / "windows")).to_pyarrow_table()
    found = {(r["window_date"], r["origin"]): r["departures"] for r in table.to_pylist()}
    assert len(found) == 3
    assert found == {key: departures[key] for key in found}

    reported = run("strandline_report", {"pipeline": "flights_daily"})
    assert reported.state == "success"
    page = lake / "flights_daily" / "_reports" / "report.html"
    assert "flights_daily" in page.read_text(encoding="utf-8")


def test_what_a_real_spark_submit_ends_with_decides_that_wrong_input_is_not_retried(
    run, tmp_path, monkeypatch
):
    """A lake without the landing table."""
    monkeypatch.setenv("STRANDLINE_LAKE", str(tmp_path / "empty"))
    done = run("strandline_daily_flights", logical_date=THIRD)
    assert (done.state, done.tasks["advance"], done.tries["advance"]) == ("failed", "failed", 1)
