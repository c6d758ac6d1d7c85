"""The page in a real Airflow, in a real browser: from the navigation to a slot, on any screen."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest
from browser import BROWSER, a_browser
from calendars import a_slot, write_calendar
from many_days import a_lake_of

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.pipeline.views.report import write_report
from strandline.spec import find_spec

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not BROWSER, reason="no Chromium is installed to open the page in"),
]
PROJECT = Path(__file__).resolve().parents[2]
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
FRAME = "document.querySelector('iframe').contentDocument"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A lake of ten days of flights, with open, late and empty slots; or the one to be pictured."""
    if pictured := os.environ.get("PICTURED_LAKE"):
        return Path(pictured)
    folder = tmp_path_factory.mktemp("lake")
    spec = find_spec(PROJECT / "pipelines", "flights")
    lake = a_lake_of(10, spec, folder)
    rows = [a_slot(n, hours=1, late=n % 5 if n % 7 == 0 else 0) for n in range(10 * 24 - 3)]
    rows[30] |= {"gap": True, "on_time": 0}
    rows += [a_slot(10 * 24 - n, hours=1, state="open", fired_at=None) for n in (3, 2, 1)]
    write_calendar(lake.pipeline("flights"), rows)
    failed = Entry("r-2", 1, "failed", "advance", message="no space left")
    Ledger(lake.pipeline("flights")).append(failed, datetime.now(UTC))
    write_report(spec, lake, data_docs=False)
    return folder


@pytest.fixture(scope="module")
def airflow(lake, tmp_path_factory):
    """The address of an Airflow without a scheduler, and the token of somebody signed in."""
    home = tmp_path_factory.mktemp("home")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    passwords = home / "passwords.json"
    passwords.write_text(json.dumps({"ann": "secret"}))
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "ann:viewer",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "STRANDLINE_LAKE": str(lake),
        "STRANDLINE_PIPELINES": str(PROJECT / "pipelines"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    program = str(Path(sys.executable).with_name("airflow"))
    migrated = [program, "db", "migrate"]
    subprocess.run(migrated, env=environment, check=True, capture_output=True, timeout=120)
    options = ["--host", "127.0.0.1", "--port", str(port)]
    with (home / "server.log").open("w") as log:
        server = subprocess.Popen(
            [program, "api-server", *options], env=environment, stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        yield url, _token(url, server, home / "server.log")
    finally:
        server.terminate()
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:  # it waits for connections to close
            server.kill()
            server.wait()


def _token(url, server, log):
    asked = json.dumps({"username": "ann", "password": "secret"}).encode()
    headers = {"Content-Type": "application/json"}
    until = time.monotonic() + 300
    while time.monotonic() < until:
        assert server.poll() is None, log.read_text()
        try:
            request = urllib.request.Request(f"{url}/auth/token", asked, headers)
            with DIRECT.open(request, timeout=5) as answer:
                return json.load(answer)["access_token"]
        except OSError:
            time.sleep(0.25)
    raise AssertionError(log.read_text())


def _narrow(browser):
    return browser.script(
        "[document.documentElement.scrollWidth <= innerWidth, document.documentElement.scrollWidth]"
    )


def test_from_airflows_navigation_a_person_gets_to_a_slot_on_any_screen(airflow, tmp_path):
    url, token = airflow
    with a_browser(tmp_path / "profile") as browser:

        def picture(name: str) -> None:
            """Where pictures are wanted; to draw one takes longer than to open a page."""
            if folder := os.environ.get("PICTURES"):
                browser.picture(Path(folder) / f"page-{name}.png")

        browser.looks(width=1280)
        browser.open(f"{url}/strandline/")
        assert "Not authenticated" in browser.script("document.body.innerText")
        browser.call("Network.setCookie", name="_token", value=token, url=url)

        # in Airflow's own interface, by its navigation, inside its frame
        browser.open(url)
        link = "document.querySelector('a[href$=\"plugin/strandline\"]')"
        browser.until(f"{link} && ({link}.click(), true)")
        browser.until(f"{FRAME}.querySelector('h1').innerText === 'Pipelines'")
        browser.until(f"{FRAME}.readyState === 'complete'")
        time.sleep(0.5)
        picture("in-airflow")
        browser.script(f"{FRAME}.querySelector('a[href$=\"/pipelines/flights\"]').click()")
        browser.until(f"{FRAME}.querySelector('table.calendar .cell')")
        browser.script(f"{FRAME}.querySelector('table.calendar .cell.closed.share-3,"
                       "table.calendar .cell.closed.share-2').click()")  # fmt: skip
        browser.until(f"{FRAME}.querySelector('h1').innerText.includes('–')")
        assert "came too late" in browser.script(f"{FRAME}.body.innerText")

        # by itself: light and dark, wide and narrow, with the keyboard
        for width, height, dark in ((1280, 1000, False), (1280, 1000, True), (700, 1000, False),
                                    (360, 800, False)):  # fmt: skip
            browser.looks(width=width, height=height, dark=dark)
            for name, path in (("overview", ""), ("calendar", "pipelines/flights"),
                               ("incomplete", "pipelines/flights/incomplete")):  # fmt: skip
                browser.open(f"{url}/strandline/{path}")
                assert _narrow(browser)[0], (name, width, _narrow(browser))
                picture(f"{name}-{width}{'-dark' if dark else ''}")
            slot = browser.script(
                "[...document.querySelectorAll('tbody tr')].find("
                "(row) => row.innerText.includes('closed')).querySelector('a').href"
            )
            browser.open(slot)
            assert _narrow(browser)[0], ("slot", width, _narrow(browser))
            picture(f"slot-{width}{'-dark' if dark else ''}")
        ground = "getComputedStyle(document.body).backgroundColor"
        browser.looks(width=1280, dark=True)
        dark_ground = browser.script(ground)
        browser.looks(width=1280)
        assert dark_ground != browser.script(ground)
        key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
        browser.call("Input.dispatchKeyEvent", type="keyDown", **key)
        focused = browser.script(
            "[document.activeElement.className, document.activeElement.getBoundingClientRect().x]"
        )
        assert focused[0] == "skip" and focused[1] >= 0

        # the report in its frame, and nothing from anywhere else
        browser.open(f"{url}/strandline/pipelines/flights/report")
        browser.until("document.querySelector('iframe')")
        time.sleep(0.5)
        picture("report-1280")
        assert {asked.split("/")[2] for asked in browser.asked if "//" in asked[:8]} == {
            url.split("/")[2]
        }
