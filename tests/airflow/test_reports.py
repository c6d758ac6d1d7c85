"""The reports that Airflow serves: to those who are signed in only."""

from __future__ import annotations

from pathlib import Path

import pytest
from many_days import a_lake_of

from strandline.spec import find_spec

pytestmark = pytest.mark.airflow
PAGE = "/strandline/reports/flights"


@pytest.fixture
def signed_in(signed_in_as):
    return signed_in_as("viewer")


@pytest.fixture
def lake(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("STRANDLINE_LAKE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "path", [PAGE, "/strandline/reports/nope", "/strandline/", "/strandline/x"]
)
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer forged"}], ids=["none", "forged"]
)
def test_nobody_reads_a_report_without_signing_in(client, path, headers):
    assert client.get(path, headers=headers).status_code in {401, 403, 404}
    assert client.get(PAGE, headers=headers).status_code in {401, 403}


def test_a_report_is_served_as_a_page_that_can_touch_nothing(client, signed_in, lake):
    page = lake / "flights" / "_reports" / "report.html"
    page.parent.mkdir(parents=True)
    page.write_text("<h1>flights</h1>")
    answer = client.get(PAGE, headers=signed_in)
    assert (answer.status_code, answer.text) == (200, "<h1>flights</h1>")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy and "default-src 'none'" in policy


def test_a_report_that_was_not_made_yet_says_how_to_make_it(client, signed_in, lake):
    answer = client.get(PAGE, headers=signed_in)
    assert answer.status_code == 404
    assert "strandline_report" in answer.json()["detail"]


@pytest.mark.parametrize("name", ["nope", "%2e%2e%2fsecret", "flights%2f..%2fsecret"])
def test_only_reports_of_pipelines_are_served(client, signed_in, lake, name):
    secret = lake / "secret" / "_reports" / "report.html"
    secret.parent.mkdir(parents=True)
    secret.write_text("secret")
    answer = client.get(f"/strandline/reports/{name}", headers=signed_in)
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace(name, "")


@pytest.fixture(scope="module")
def hundred_days(home, tmp_path_factory) -> Path:
    """A lake of 100 days."""
    folder = tmp_path_factory.mktemp("days")
    a_lake_of(100, find_spec(home / "pipelines", "flights"), folder)
    return folder


def test_a_report_of_other_days_is_made_when_it_is_asked_for(
    client, signed_in, hundred_days, monkeypatch
):
    monkeypatch.setenv("STRANDLINE_LAKE", str(hundred_days))
    answer = client.get(f"{PAGE}?since=2013-01-01&until=2013-01-03", headers=signed_in)
    assert answer.status_code == 200, answer.text
    assert "from <b>2013-01-01</b> to <b>2013-01-03</b>" in answer.text
    assert "200 slots, 200 windows, 200 records in quarantine" in answer.text
    assert "sandbox allow-scripts" in answer.headers["content-security-policy"]
    assert not (hundred_days / "flights" / "_reports").exists()


@pytest.mark.parametrize(
    ("days", "status", "problem"),
    [
        ("since=2013-01-05&until=2013-01-04", 400, "is after --until 2013-01-04"),
        ("until=2013-02-30", 400, "is not a date"),
        ("since=yesterday", 422, "pattern"),
        ("since=", 422, "pattern"),
        ("since=2013-01-01%0A", 422, "pattern"),
        ("since=2013-01-01%20--lake%20x", 422, "pattern"),
        ("until=%3Cscript%3Ealert(1)%3C/script%3E", 422, "pattern"),
    ],
)
def test_days_that_are_none_are_refused_and_become_no_page(
    client, signed_in, hundred_days, monkeypatch, days, status, problem
):
    monkeypatch.setenv("STRANDLINE_LAKE", str(hundred_days))
    answer = client.get(f"{PAGE}?{days}", headers=signed_in)
    assert answer.status_code == status
    assert problem in answer.text
    assert answer.headers["content-type"] == "application/json"


def test_nobody_has_a_report_made_without_signing_in(client):
    assert client.get(f"{PAGE}?since=2013-01-01").status_code in {401, 403}
