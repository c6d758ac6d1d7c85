"""Credentials of a lake's object store come from a connection, and stay out of sight."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.airflow
SECRET = "a-secret/that+nobody/may-see"


@pytest.fixture
def stores(bag, monkeypatch):
    """Airflow knows a lake on an object store, and its credentials."""
    monkeypatch.setenv("STRANDLINE_LAKE", "s3://bucket/lake")
    said = {"conn_type": "strandline", "extra": {"store": "store_of_lake"}}
    monkeypatch.setenv("AIRFLOW_CONN_STRANDLINE_ENGINE", json.dumps(said))
    extra = {"region_name": "eu-central-1", "endpoint_url": "http://127.0.0.1:9"}
    aws = {"conn_type": "aws", "login": "AKEY", "password": SECRET, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_STORE_OF_LAKE", json.dumps(aws))


def test_a_job_gets_them_as_variables(stores):
    from strandline_airflow.settings import job_environment

    found = job_environment()
    assert found["STRANDLINE_LAKE"] == "s3://bucket/lake"
    assert {name: value for name, value in found.items() if name.startswith("AWS_")} == {
        "AWS_ACCESS_KEY_ID": "AKEY",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
    }


def test_logs_mask_them(stores):
    from airflow.sdk._shared.secrets_masker import redact

    from strandline_airflow.settings import job_environment

    job_environment()
    assert SECRET not in str(redact(f"it failed with {SECRET}"))


def test_without_such_a_connection_a_job_has_those_of_its_task(stores, monkeypatch):
    from strandline_airflow.settings import job_environment

    monkeypatch.delenv("AIRFLOW_CONN_STRANDLINE_ENGINE")
    assert not any(name.startswith("AWS_") for name in job_environment())


def test_a_report_which_no_folder_of_the_lake_can_hold_is_skipped_and_made_when_opened(
    stores, execute, monkeypatch
):
    from airflow.sdk.exceptions import AirflowSkipException

    from strandline_airflow.page import documents

    with pytest.raises(AirflowSkipException, match="the page Strandline makes it"):
        execute("strandline_daily_flights", "report")
    monkeypatch.setattr(documents, "_report_of", lambda pipeline, **days: f"{pipeline}, {days}")
    shown = documents.report(SimpleNamespace(pipeline="flights"))
    assert shown.body == b"flights, {'since': None, 'until': None}"


def test_what_the_page_keeps_of_a_lake_on_a_store_is_a_minute_old_at_most(stores, monkeypatch):
    from strandline_airflow.page import views

    kept = []
    for now_ms in (0, 59_999, 60_000):
        monkeypatch.setattr(views, "now_ms", lambda now_ms=now_ms: now_ms)
        kept.append(views.state_of("flights"))
    assert kept[0] == kept[1] != kept[2]
