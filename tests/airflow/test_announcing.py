"""What asset events say of a published run, and which assets have one."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.airflow

ANSWER = {
    "run_id": "r-1",
    "kind": "advance",
    "status": "published",
    "range": {"start": "2013-01-01T00:00:00Z", "end": "2013-01-03T00:00:00Z"},
    "horizon": "2013-01-03T00:00:00Z",
    "diff": {"windows": {"insert": 3, "update": 0, "delete": 0}},
    "dates": {"windows": [["2013-01-01", "2013-01-02"], ["2013-02-01", "2013-02-01"]]},
    "completed": [["2013-01-01", "2013-01-01"]],
    "findings": [{"severity": "warning", "sentence": "12 % malformed"}],
}
NOTHING = ANSWER | {"diff": {}, "dates": {}, "completed": [], "findings": []}


@pytest.fixture
def events():
    from airflow.sdk.execution_time.context import OutletEventAccessors

    return OutletEventAccessors()


def announced(events, answer, pipeline="flights"):
    from strandline_airflow import announcing

    outlets = announcing.outlets_of(pipeline)
    announcing.announce(events, outlets, pipeline, answer)
    return [events[outlet] for outlet in outlets]


def test_an_event_says_run_range_counts_and_verdict(events):
    published, _, _ = announced(events, ANSWER)
    assert published.extra["run_id"] == "r-1"
    assert published.extra["range"] == ANSWER["range"]
    assert published.extra["counts"] == ANSWER["diff"]
    assert published.extra["verdict"] == "warning"
    assert published.extra["findings"] == ["12 % malformed"]


@pytest.mark.parametrize(
    ("severities", "verdict"),
    [
        (["info", "warning"], "warning"),
        (["warning", "info"], "warning"),
        (["info", "warning", "critical"], "critical"),
        (["info"], "OK"),
        ([], "OK"),
    ],
)
def test_the_verdict_is_the_gravest_finding_and_an_info_is_none(severities, verdict):
    from strandline_airflow.announcing import event_of

    found = [{"severity": one, "sentence": one} for one in severities]
    assert event_of(ANSWER | {"findings": found})["verdict"] == verdict


def test_each_date_whose_windows_differ_is_a_partition_and_the_tables_have_an_event_too(events):
    published, whole, _ = announced(events, ANSWER)
    assert published.partition_keys == {"2013-01-01", "2013-01-02", "2013-02-01"}
    (event,) = whole.asset_alias_events  # an event of a partition starts no chained pipeline
    assert event.dest_asset_key.uri == "strandline://flights/windows"
    assert event.extra == published.extra


def test_where_nothing_differs_there_is_no_partition_and_no_day_complete(events):
    published, whole, complete = announced(events, NOTHING)
    assert published.extra["verdict"] == "OK"
    assert not published.partition_keys
    assert not whole.asset_alias_events  # Airflow's own event of the outlet is the one
    assert not complete.asset_alias_events


def test_days_whose_slots_are_all_closed_are_an_event_of_a_second_asset(events):
    _, _, complete = announced(events, ANSWER)
    (event,) = complete.asset_alias_events
    assert event.dest_asset_key.uri == "strandline://flights/complete"
    assert event.extra["completed"] == [["2013-01-01", "2013-01-01"]]


def test_a_reprocessed_range_is_an_event_of_the_pipeline_that_the_run_names(events):
    from strandline_airflow import announcing

    outlets = announcing.outlets_of_any()
    announcing.announce(events, outlets, "flights", ANSWER)
    uris = [e.dest_asset_key.uri for o in outlets for e in events[o].asset_alias_events]
    assert uris == ["strandline://flights/windows", "strandline://flights/complete"]


@pytest.mark.parametrize("answer", [None, "text", {}])
def test_an_answer_that_says_nothing_breaks_no_event(events, answer):
    published, whole, complete = announced(events, answer)
    assert not published.partition_keys
    assert not whole.asset_alias_events
    assert not complete.asset_alias_events
    assert published.extra.get("run_id") is None


def test_a_chained_pipeline_starts_once_for_dates_that_have_changed(run, submit):
    from datetime import UTC, datetime

    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    def partitions():
        with create_session() as session:
            return sorted(str(key) for key in session.scalars(select(AssetEvent.partition_key)))

    before = partitions()
    submit.will_answer(ANSWER)
    run("strandline_daily_flights", logical_date=datetime(2013, 1, 20, 6, tzinfo=UTC))
    new = partitions()
    for key in before:
        new.remove(key)
    # of the tables as a whole, and of the days that are complete; and one for each date
    assert new == ["2013-01-01", "2013-01-02", "2013-02-01", "None", "None"]
