"""The page "Strandline" in Airflow: what it shows, to whom, and what hostile requests get."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import pytest
from calendars import a_slot, write_calendar
from many_days import a_lake_of

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.model.intervals import TimeRange
from strandline.spec import find_spec

pytestmark = pytest.mark.airflow
ROOT = "/strandline"
SLOT = "slot?start=2013-01-01T00:00:00Z&end=2013-01-01T12:00:00Z"
BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def days(home, tmp_path_factory):
    """A lake of ten days, the eleventh slot of which holds a hostile text."""
    folder = tmp_path_factory.mktemp("page")
    lake = a_lake_of(10, find_spec(home / "pipelines", "flights"), folder)
    rows = [a_slot(number, late=number % 3) for number in range(19)]
    rows.append(a_slot(19, state="open", fired_at=None, closed_at=None))
    write_calendar(lake.pipeline("flights"), rows)
    step = Entry("r-2", 1, "failed", "advance", message="<script>alert(1)</script> no space left")
    Ledger(lake.pipeline("flights")).append(step, datetime.now(UTC))
    return folder


@pytest.fixture
def lake(days, monkeypatch) -> Path:
    monkeypatch.setenv("STRANDLINE_LAKE", str(days))
    return days


@pytest.fixture
def get(client, signed_in_as):
    """A page as a signed-in viewer's browser gets it."""

    def get(path, role="viewer"):
        return client.get(f"{ROOT}{path}", headers=BROWSER | signed_in_as(role))

    return get


@pytest.fixture(scope="module")
def app(home):
    from strandline_airflow.page.app import app

    return app


def paths_of(app):
    """A path for each route of the app, its parameters filled in."""
    filled = {"pipeline": "flights", "day": "2013-01-01", "run_id": "r-1", "path": "index.html"}
    asked = {"/dag": "?dag_id=strandline_daily_flights"}
    asked["/pipelines/{pipeline}/slot"] = f"?{SLOT.partition('?')[2]}"
    found = {}
    for route in _routes(app.routes):
        path = re.sub(r"{(\w+)(:path)?}", lambda name: filled[name[1]], route.path)
        found[route.path] = path + asked.get(route.path, "")
    return found


def _routes(routes):
    """The routes, those of included routers too; what is mounted would have to be looked at."""
    for route in routes:
        assert "Mount" not in type(route).__name__, f"{route}: is it for the signed-in only?"
        if hasattr(route, "path"):
            yield route
        else:
            yield from _routes(getattr(route, "original_router", route).routes)


def test_every_route_refuses_those_who_are_not_signed_in(app, client, lake):
    paths = paths_of(app)
    assert len(paths) >= 12
    for headers in ({}, BROWSER, {"Authorization": "Bearer forged"}):
        for path in [*paths.values(), "/nothing/here", "/docs/flights/../../secret"]:
            answer = client.get(f"{ROOT}{path}", headers=headers)
            refused = {401} if "Authorization" not in headers else {401, 403}
            assert answer.status_code in refused, path
            assert "flights" not in answer.text, path


def test_every_route_refuses_those_without_any_right(app, get, lake):
    for path in paths_of(app).values():
        answer = get(path, role=None)
        assert answer.status_code == 403, path
        assert "2013" not in answer.text


@pytest.fixture
def without_dags(client, monkeypatch):
    """An auth manager that lets its users see plugins, and read no DAG but some."""
    from airflow.api_fastapi.app import get_auth_manager

    def readable(*dags):
        def decide(*, details=None, **_):
            return details is not None and details.id in dags

        monkeypatch.setattr(get_auth_manager(), "is_authorized_dag", decide)

    return readable


def test_every_route_of_a_pipeline_needs_its_dag(app, get, lake, without_dags):
    without_dags("strandline_daily_flights_hourly")
    for template, path in paths_of(app).items():
        if "{pipeline}" in template or template == "/dag":
            answer = get(path)
            assert answer.status_code == 403, path
            assert "You may not" in answer.text
    # nobody learns which pipelines there are
    assert get("/pipelines/nope").status_code == 403
    assert get("/pipelines/flights_hourly").status_code == 200
    shown = get("/").text
    assert "flights_hourly" in shown and ">flights<" not in shown
    assert re.search(r"\d more pipelines are hidden", shown)


def test_who_may_read_no_pipeline_is_told_whom_to_ask(get, lake, without_dags):
    without_dags()
    shown = get("/").text
    assert "You may not read the DAG of any pipeline here" in shown


def test_who_may_read_another_dag_that_publishes_a_pipeline_sees_it(
    get, lake, without_dags, monkeypatch
):
    from strandline_airflow.page import access

    without_dags("my_etl")
    assert get("/pipelines/flights").status_code == 403
    publishing = SimpleNamespace(all=lambda: ["my_etl"])
    monkeypatch.setattr(access.Session, "scalars", lambda *_: publishing)
    assert get("/pipelines/flights").status_code == 200


HOSTILE = [
    "/pipelines/..%2f..%2fetc%2fpasswd",
    "/pipelines/%00",
    "/pipelines/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
    "/pipelines/flights'%20OR%201=1--",
    f"/pipelines/{'a' * 5000}",
    "/pipelines/flights?until=99999-01-01",
    "/pipelines/flights?until=%3Cscript%3Ealert(1)%3C/script%3E",
    "/pipelines/flights?until=2013-02-30",
    "/pipelines/flights?until=1e400",
    "/pipelines/flights/days/99999-01-01",
    "/pipelines/flights/days/..%2f..%2fsecret",
    "/pipelines/flights/days/2013-01-01?page=99999999999999999999999999",
    "/pipelines/flights/days/2013-01-01?page=-1",
    "/pipelines/flights/incomplete?since=2013-01-05&until=2013-01-01",
    "/pipelines/flights/incomplete?page=%00",
    "/pipelines/flights/incomplete?page=2",
    "/pipelines/flights/days/2013-01-01?page=2",
    "/pipelines/flights/slot",
    "/pipelines/flights/slot?start=%3Cscript%3E&end=1",
    "/pipelines/flights/slot?start=99999-01-01T00:00:00Z&end=99999-01-02T00:00:00Z",
    "/pipelines/flights/slot?start=99999999999999999999999&end=99999999999999999999999",
    "/pipelines/flights/slot?start=2013-01-01T00:00:00Z&end=2013-01-01T12:00:00.001Z",
    "/pipelines/flights/slot?start=9999-12-31T23:59:59-23:59&end=9999-12-31T23:59:59-23:59",
    "/pipelines/flights/slot?start=9999-12-31T23:59:59.999Z&end=9999-12-31T23:59:59.999Z",
    "/pipelines/flights/slot?start=0001-01-01T00:00:00%2B23:59&end=0001-01-01T00:00:00Z",
    "/pipelines/flights/slot?start=2013-01-01T00:00:00&end=2013-01-01T12:00:00",
    "/pipelines/flights/runs/..%2f..%2fsecret",
    "/pipelines/flights/runs/%00",
    "/pipelines/flights/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
    "/docs/flights/..%2f..%2f..%2fsecret.html",
    "/docs/flights/%2e%2e/%2e%2e/secret.html",
    "/docs/flights//etc/passwd",
    "/docs/flights/%00.html",
    f"/docs/flights/{'a' * 5000}.html",
    "/docs/flights/outside.html",
    "/docs/flights/data.txt",
    "/dag?dag_id=%00",
    "/dag?dag_id=%3Cscript%3Ealert(1)%3C/script%3E",
    "/dag?dag_id=strandline_daily_flights&run_id=%00",
    "/dag",
    "/reports/flights?since=%00",
    "/nothing/here",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_a_hostile_request_is_refused_with_a_page_that_is_only_text(get, lake, path):
    docs = lake / "flights" / "_reports" / "data_docs"
    docs.mkdir(parents=True, exist_ok=True)
    (lake / "secret.html").write_text("the secret")
    (docs / "data.txt").write_text("the secret")
    (docs / "outside.html").unlink(missing_ok=True)
    (docs / "outside.html").symlink_to(lake / "secret.html")
    answer = get(path)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert "All pipelines" in answer.text
    assert "the secret" not in answer.text and "root:" not in answer.text
    assert "<script" not in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("year", ["0001-01-01", "9999-12-31"])
def test_days_at_the_ends_of_time_are_empty_pages_and_no_errors(get, lake, year):
    for path in (f"?until={year}", f"/days/{year}", f"/incomplete?since={year}&until={year}"):
        assert get(f"/pipelines/flights{path}").status_code == 200


class Seen(HTMLParser):
    """What a page is made of."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.links = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "a":
            self.links.append(dict(attrs)["href"])

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def test_from_all_pipelines_links_lead_to_a_calendar_a_day_a_slot_and_a_run(get, lake):
    def follow(page, where):
        link = next(link for link in Seen(page).links if re.search(where, link))
        answer = get(link.removeprefix(ROOT))
        assert answer.status_code == 200, link
        return answer.text

    every = get("/").text
    assert "1 alarm" in every and "the last run of advance failed" in every
    calendar = follow(every, r"/pipelines/flights$")
    assert re.search(r"<dt>Watermark</dt><dd>(none yet|[^<]*held by)", calendar), calendar
    assert "20 windows from 2013-01-01 to 2013-01-10" in calendar
    day = follow(calendar, "/days/2013-01-04")
    assert "1 of 11 records came too late (9.09 %)" in day
    slot = follow(day, "/slot")
    assert "Runs that touched it" in slot and "1 of 1 in quarantine as late" in slot
    assert re.search(r'<th scope="col" class="number">(records|late_by_ms)</th>', slot)
    listed = follow(calendar, "/incomplete")
    assert "13 of 20 windows incomplete" in listed
    assert "Steps" in follow(every, "/runs/r-2")


def test_a_reverted_run_says_so_on_its_page_and_at_its_slots(get, home, tmp_path, monkeypatch):
    monkeypatch.setenv("STRANDLINE_LAKE", str(tmp_path))
    lake = a_lake_of(1, find_spec(home / "pipelines", "flights"), tmp_path)
    ledger = Ledger(lake.pipeline("flights"))
    (run,) = ledger.state().published
    again = {"step": "published", "kind": "revert", "reverts": run.run_id}
    ledger.append(replace(run, run_id="v-1", **again), datetime.now(UTC))
    page = get(f"/pipelines/flights/runs/{run.run_id}").text
    assert '<span class="chip idle">published, reverted</span>' in page
    assert re.search(r"<dt>Reverted by</dt><dd><a [^>]*/runs/v-1", page)
    assert "<small>reverted</small>" in get(f"/pipelines/flights/{SLOT}").text


def test_what_stands_in_the_data_is_text(get, lake):
    for path in ("/", "/pipelines/flights", "/pipelines/flights/runs/r-2"):
        text = get(path).text
        assert "&lt;script&gt;alert(1)" in text
        assert "<script" not in text


@pytest.mark.parametrize(
    "path",
    ["/", "/pipelines/nope"]
    + [f"/pipelines/flights{of}" for of in ("", "/days/2013-01-01", "/incomplete", "/report")]
    + [f"/pipelines/flights/{SLOT}"],
)
def test_a_page_runs_nothing_loads_nothing_and_can_be_read_with_a_keyboard_and_by_ear(
    get, lake, path
):
    answer = get(path)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy and "frame-ancestors 'self'" in policy
    seen = Seen(answer.text)
    names = {name for name, _ in seen.tags}
    assert not names & {"script", "link", "img", "object"}
    handlers = {key for _, attrs in seen.tags for key in attrs if key.startswith("on")}
    assert not handlers and not any("style" in attrs for _, attrs in seen.tags)
    assert seen.all("html")[0]["lang"] == "en"
    assert seen.links[0] == "#content" and seen.all("main")[0]["id"] == "content"
    assert len(seen.all("h1")) == 1
    assert len(seen.all("table")) == len(seen.all("caption"))
    assert all("scope" in attrs for attrs in seen.all("th"))
    assert all("aria-label" in attrs for attrs in seen.all("nav"))
    assert all(link.startswith(("#", f"{ROOT}/")) for link in seen.links)


def test_each_cell_says_in_text_what_its_colour_says(get, lake):
    text = get("/pipelines/flights").text
    assert "00:00 – 12:00: 90.9 %, closed; 1 of 11 records came too late (9.09 %)" in text
    assert "100 % so far, open; not fired" in text


def with_runs(days, tmp_path, *steps):
    """A copy of a lake in which further steps of runs are."""
    folder = tmp_path / "lake"
    copytree(days, folder)
    ledger = Ledger(Lake.at(str(folder)).pipeline("flights"))
    for step in steps:
        ledger.append(step, datetime.now(UTC))
    return folder


def test_a_run_that_has_not_published_shows_what_it_would_change_and_one_that_did_what_it_changed(
    get, tmp_path, monkeypatch, days
):
    diff = {"windows": {"insert": 2, "update": 0, "delete": 0}}
    steps = [
        Entry(f"{step}-1", 1, step, "backfill", TimeRange(0, 1), diff=diff, accepted_loss=loss)
        for step, loss in (("rejected", None), ("failed", None), ("published", "the disk <b>died"))
    ]
    monkeypatch.setenv("STRANDLINE_LAKE", str(with_runs(days, tmp_path, *steps)))
    captions = {
        "rejected": "What it would change (not published)",
        "failed": "What it would change (perhaps published in part)",
        "published": "What it changed",
    }
    for step, caption in captions.items():
        text = get(f"/pipelines/flights/runs/{step}-1").text
        assert f"<caption>{caption}</caption>" in text
        loss = "<dt>Accepts missing rows</dt><dd>the disk &lt;b&gt;died</dd>"
        assert (loss in text) == (step == "published")


@pytest.mark.parametrize(
    ("changes", "watermark"),
    [
        ({"watermark": {"summary": "2013-01-10"}}, "2013-01-10"),
        (
            {"upstream": {"pipeline": "flights_hourly"}},
            "the watermark of flights_hourly: see its status",
        ),
        ({"two_sources": True}, "not known from the records alone"),
        ({}, "none yet"),
    ],
)
@pytest.mark.parametrize(
    ("slots", "closed", "shown"),
    [
        (0, None, "no slot yet"),
        (20, None, "the last slot"),
        (20, "0001-01-01T00:00:00Z", "nothing yet"),
        (20, "2013-01-09T00:00:00Z", "2013-01-09 00:00"),
    ],
)
def test_the_page_says_closed_up_to_and_watermark_in_the_words_of_the_command(
    app, changes, watermark, slots, closed, shown
):
    from strandline.quality import progress
    from strandline_airflow.page.rendering import _environment

    found = {"watermark": None, "upstream": None, "two_sources": False}
    found |= {"closed_up_to": closed, "totals": {"slots": slots}, **changes}
    text = (
        _environment()
        .from_string("{{ of | watermark }} | {{ of | closed_up_to }}")
        .render(of=found)
    )
    assert text == f"{watermark} | {shown}"
    # as the command says them, but for the form of an instant
    assert progress.watermark(found) == watermark
    assert progress.closed_up_to(closed, slots, lambda instant: shown) == shown


def test_a_pipeline_without_runs_a_lake_without_tables_and_a_broken_ledger_are_pages(
    get, tmp_path, monkeypatch, days
):
    monkeypatch.setenv("STRANDLINE_LAKE", str(tmp_path / "none"))
    assert "has not run yet" in get("/").text
    empty = get("/pipelines/flights")
    assert (empty.status_code, "It has not run yet" in empty.text) == (200, True)
    log = tmp_path / "broken" / "flights" / "runs" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text('{"add": 1}')
    monkeypatch.setenv("STRANDLINE_LAKE", str(tmp_path / "broken"))
    assert "critical" in get("/").text
    broken = get("/pipelines/flights")
    assert broken.status_code == 503 and "Traceback" not in broken.text
    assert "All pipelines" in broken.text


def test_a_broken_pipeline_file_is_named(get, lake, home):
    file = home / "pipelines" / "broken.yaml"
    file.write_text("pipeline: [")
    try:
        assert "broken.yaml" in get("/").text
    finally:
        file.unlink()


def test_the_report_and_the_audits_are_shown_with_the_way_back(get, lake):
    assert "strandline report flights" in get("/pipelines/flights_hourly/report").text.replace(
        "flights_hourly", "flights"
    )
    docs = lake / "flights" / "_reports" / "data_docs" / "validations"
    docs.mkdir(parents=True, exist_ok=True)
    (docs.parent / "index.html").write_text("<h1>Audits</h1>")
    (docs / "one.html").write_text("<h1>One</h1>")
    page = get("/pipelines/flights/audits").text
    assert Seen(page).all("iframe")[0]["src"] == "/strandline/docs/flights/index.html"
    answer = get("/docs/flights/validations/one.html")
    assert (answer.status_code, answer.text) == (200, "<h1>One</h1>")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    (lake / "flights" / "_reports" / "report.html").write_text("<h1>Report</h1>")
    page = get("/pipelines/flights/report").text
    assert Seen(page).all("iframe")[0]["src"] == "/strandline/reports/flights"


def test_a_dag_leads_to_its_pipeline_and_another_one_to_all(get, lake, bag):
    from airflow.models.dagbundle import DagBundleModel  # noqa: F401 - its table is asked
    from airflow.models.serialized_dag import SerializedDagModel

    with pytest.MonkeyPatch.context() as patch:
        found = {"strandline_daily_flights": bag.dags["strandline_daily_flights"]}
        patch.setattr(SerializedDagModel, "get_dag", lambda dag_id, session: found.get(dag_id))
        page = get("/dag?dag_id=strandline_daily_flights&task_id=advance").text
        assert "Calendar of completeness" in page
        run = get("/dag?dag_id=strandline_daily_flights&run_id=manual__2013-01-01T00:00:00%2B00:00")
        assert "It has computed nothing for flights yet" in run.text
        assert "No pipeline of Strandline" in get("/dag?dag_id=another").text


def test_airflow_is_given_the_page_in_its_navigation_and_beside_dags_runs_and_tasks(
    client, signed_in_as
):
    answer = client.get("/api/v2/plugins", headers=signed_in_as("admin")).json()
    plugin = next(one for one in answer["plugins"] if one["name"] == "strandline")
    views = {one["destination"]: one for one in plugin["external_views"]}
    assert {*views} == {"nav", "dag", "dag_run", "task"}
    assert len({one["url_route"] for one in views.values()}) == 4
    assert views["nav"]["href"] == "/strandline/"
    assert views["dag_run"]["href"] == "/strandline/dag?dag_id={DAG_ID}&run_id={RUN_ID}"


def test_below_a_base_url_with_a_path_the_page_stands_below_that(monkeypatch, home):
    from airflow.sdk.configuration import conf

    from strandline_airflow.plugin import external_views

    monkeypatch.setattr(conf, "get", lambda *_, **__: "http://here:8080/airflow/")
    assert external_views()[0]["href"] == "/airflow/strandline/"


def test_whoever_asks_while_as_many_wait_as_may_is_asked_to_come_back(get, lake, monkeypatch):
    from strandline_airflow.asked_reports import AskedReports, BusyError
    from strandline_airflow.page import views

    def busy(*_):
        raise BusyError

    monkeypatch.setattr(views, "_KEPT", SimpleNamespace(page=busy))
    assert isinstance(AskedReports(most_waiting=1), AskedReports)
    answer = get("/pipelines/flights")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_a_reading_process_that_was_killed_is_started_again(get, lake):
    from strandline_airflow.page import views

    assert get("/pipelines/flights?until=2013-01-05").status_code == 200
    views._WORKER._process.kill()
    views._WORKER._process.wait()
    assert get("/pipelines/flights?until=2013-01-06").status_code == 200


def test_one_that_says_something_else_is_an_error_page(get, lake, command):
    answer = get("/pipelines/flights?until=2013-01-07")
    assert answer.status_code == 503
    assert "try again" in answer.text


def test_one_that_cannot_be_started_is_an_error_page_that_says_which(get, lake, monkeypatch):
    said = '{"conn_type": "strandline", "extra": {"executable": "/opt/nowhere/strandline"}}'
    monkeypatch.setenv("AIRFLOW_CONN_STRANDLINE_ENGINE", said)
    for path in ("/pipelines/flights?until=2013-01-09", "/reports/flights?since=2013-01-09"):
        answer = get(path)
        assert answer.status_code == 503
        assert "/opt/nowhere/strandline cannot be started" in answer.text
        assert "strandline_engine" in answer.text


def test_one_that_takes_too_long_is_ended(get, lake, command, monkeypatch):
    from strandline_airflow.page import views

    monkeypatch.setattr(views, "TIMEOUT_S", 0.5)
    command.program.write_text("#!/bin/sh\nexec sleep 60\n")
    answer = get("/pipelines/flights?until=2013-01-08")
    assert answer.status_code == 503
    assert "took longer than" in answer.text
    assert views._WORKER._process is None


@pytest.mark.parametrize(
    ("since_ms", "shown"),
    [(47_871, "47s ago"), (300, "0s ago"), (0, "0s ago"), (-47_871, "in 48s"),
     (47 * 3_600_000 + 4, "1d 23h ago"), (72 * 3_600_000, "3 days ago")],
)  # fmt: skip
def test_how_long_ago_something_was_has_no_milliseconds(since_ms, shown):
    from strandline_airflow.page.rendering import ago

    now_ms = 1_700_000_000_000
    at = datetime.fromtimestamp((now_ms - since_ms) / 1000, UTC).isoformat()
    assert ago(at, now_ms) == shown


def test_the_data_cutoff_of_a_run_over_nothing_is_none_and_not_in_the_year_one():
    from strandline_airflow.page.rendering import _environment

    cutoff = _environment().filters["cutoff"]
    assert cutoff("0001-01-01T00:00:00Z") == "none: nothing has arrived"
    assert (cutoff("2024-03-02T00:00:00Z"), cutoff(None)) == ("2024-03-02 00:00", "–")
