"""The reports that Airflow serves: to those who are signed in only."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow
PAGE = "/strandline/reports/flights"


@pytest.fixture(scope="module")
def client(bag):
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    with TestClient(create_app(apps="core"), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def signed_in(client):
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="ann", role="viewer"))
    return {"Authorization": f"Bearer {token}"}


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
