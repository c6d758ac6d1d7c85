"""The report in a real browser: its plots are drawn, and no request leaves the page."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser

import pandas as pd
import pytest
from browser import BROWSER, a_browser
from run_documents import a_run

from strandline.quality.report.page import build_report
from strandline.quality.report.tables import ReportTables, ShownDays
from strandline.spec import parse_spec

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not BROWSER, reason="no Chromium is installed to open the report in"),
]

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>"
)
HOURS = 366 * 24
NEW_YEAR = datetime(2013, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Opens a page; the document as it stands once its scripts ran, and what it asked for."""

    def run(html, *, width=1280):
        tmp_path = tmp_path_factory.mktemp("opened")
        page, log = tmp_path / "report.html", tmp_path / "net.json"
        page.write_text(html, encoding="utf-8")
        browsed = subprocess.run(
            [
                BROWSER,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--dump-dom",
                f"--window-size={width},2000",
                "--virtual-time-budget=20000",
                f"--user-data-dir={tmp_path / 'profile'}",
                # no name is ever found, so that the browser itself cannot go out either
                "--host-resolver-rules=MAP * ~NOTFOUND",
                f"--log-net-log={log}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return browsed.stdout, requests_in(log.read_text("utf-8"))

    return run


def requests_in(log):
    """What a page asked the network for; the browser's own requests have no origin."""
    # a browser that ends early leaves the list open
    whole = log if log.rstrip().endswith("}") else log.rstrip().rstrip(",") + "]}"
    requests = [event.get("params", {}) for event in json.loads(whole)["events"]]
    return sorted(
        {
            request["url"]
            for request in requests
            if request.get("initiator", "not an origin") != "not an origin"
            and not request["url"].startswith(("data:", "blob:", "file:"))
        }
    )


class Drawing(HTMLParser):
    """Counts what the page has drawn, by class, and the elements of each kind."""

    def __init__(self, dom):
        super().__init__()
        self.classes, self.tags, self.images = {}, {}, []
        self.feed(dom)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for name in (found.get("class") or "").split():
            self.classes[name] = self.classes.get(name, 0) + 1
        if tag in {"img", "image"}:
            self.images.append(
                found.get("src") or found.get("href") or found.get("xlink:href") or ""
            )


def a_year(text):
    """A year of hourly slots with empty nights, where what the tables say is `text`."""
    starts = [NEW_YEAR + timedelta(hours=n) for n in range(HOURS) if not 4 <= n % 24 < 9]
    days = [date(2013, 1, 1) + timedelta(days=n) for n in range(366)]
    late = [1 if start.hour == 13 else 0 for start in starts]
    diff = {name: {"insert": HOURS} for name in ("completeness", "quarantine", "windows")}
    failed = {"expectation": text, "table": "range", "severity": "warning", "success": False,
              "figures": text}  # fmt: skip
    return ReportTables(
        completeness=pd.DataFrame(
            {
                "slot_start": pd.Series(starts, dtype="datetime64[us, UTC]"),
                "slot_end": pd.Series(starts, dtype="datetime64[us, UTC]") + timedelta(hours=1),
                "state": ["closed"] * (len(starts) - 2) + ["fired", "open"],
                "gap": False,
                "closed_at": pd.Series(starts, dtype="datetime64[us, UTC]") + timedelta(hours=6),
                "on_time": 50,
                "late_accepted": 3,
                "late": late,
                "missed": late,
                "no_window": 0,
            }
        ),
        quarantine=pd.DataFrame(
            [(reason, day, 400_000 + day.day) for day in days for reason in ("late", text)],
            columns=["reason", "day", "records"],
        ),
        lateness=pd.DataFrame({"late_by_ms": range(60_000, 6_000_000, 60_000), "records": 4}),
        channels=pd.DataFrame(
            [
                (channel, day, 1_357_002_000_000 + 86_400_000 * number)
                for number, day in enumerate(days)
                for channel in ("EWR", text)
            ],
            columns=["channel", "arrival_date", "settled_ms"],
        ),
        runs=[
            a_run(
                "1f0c", kind="backfill", start="2013-01-01T00:00:00Z", end="2014-01-02T00:00:00Z",
                ended="2014-01-02T06:00:00Z", horizon="2014-01-02T00:00:00Z", diff=diff,
                audit=[failed], message=text, reason=text, requested_by=text, accepted_loss=text,
            )
        ],
    )  # fmt: skip


def the_page(text, **changed):
    spec = parse_spec(
        {
            "pipeline": "flights",
            "source": {"table": "t", "arrival_time": "a", "event_time": "e", "channel": "origin",
                       "channels": "discovered"},
            "watermark": {"strategy": "ascending"},
            "window": {"tumbling": "1h"},
        },
        origin="flights.yaml",
    )  # fmt: skip
    totals = {
        "slots": HOURS,
        "windows": HOURS,
        "quarantine": 0,
        "first_day": None,
        "last_day": None,
    }
    shown = ShownDays(None, None, totals)
    found = replace(a_year(text), **changed)
    return build_report(found, spec=spec, made_from="a test", shown=shown).html


@pytest.fixture(scope="module")
def harmless(opened):
    """What a page of plain texts has drawn, and what it asked for.

    Its policy forbids requests: without it there must be none either.
    """
    dom, asked = opened(re.sub(r"<meta http-equiv=[^>]*>", "", the_page("null_arrival")))
    return Drawing(dom), asked


def test_every_plot_is_drawn_and_no_request_leaves_the_page(harmless):
    drawing, asked = harmless
    assert asked == []
    assert drawing.tags["svg"] == drawing.classes["plot"] == 6
    # two calendars of a path a shade, two plots of bars, and of lateness and watermarks the lines
    assert {name: drawing.classes[name] for name in ("ground", "line", "combined")} == {
        "ground": 2,
        "line": 1 + 3,
        "combined": 1 + 1,  # the line, and its sign in the legend
    }
    for shade in ("state-1", "state-2", "state-4", "share-1", "share-3"):
        assert drawing.classes[shade] == 2, shade
    assert drawing.images == []


OUTSIDE = """[...document.querySelectorAll(".plot svg text")].filter((text) => {
    const [own, all] = [text, text.ownerSVGElement].map((one) => one.getBoundingClientRect());
    return own.left < all.left || own.right > all.right || own.bottom > all.bottom;
}).map((text) => text.textContent)"""
"""The texts that a plot cuts off."""
TOUCHING = """[...document.querySelectorAll(".plot svg")].flatMap((svg) => {
    const boxes = [...svg.querySelectorAll("text")].map((text) => text.getBoundingClientRect());
    return boxes.filter((one, at) => boxes.slice(at + 1).some((other) => one.left < other.right
        && other.left < one.right && one.top < other.bottom - 3 && other.top < one.bottom - 3));
}).length"""
"""The number of texts of a plot that lie on others."""
PLOTS = """[...document.querySelectorAll(".plot")].map((place) =>
    place.querySelector("svg").clientWidth - Math.floor(place.clientWidth))"""
"""How much wider than its place each plot is, in pixels."""
TABLES = '[...document.querySelectorAll(".table")].map((table) => table.scrollWidth)'
ROWS = '[...document.querySelectorAll("tr")].map((row) => row.clientHeight)'


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with a_browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture
def shown(browser, tmp_path):
    """Shows a page on a screen, or on paper, of some width."""

    def show(html, *, width, medium="screen"):
        page = tmp_path / "report.html"
        page.write_text(html, encoding="utf-8")
        browser.looks(width=width)
        browser.call("Emulation.setEmulatedMedia", media=medium)
        browser.open(page.as_uri())
        return browser

    return show


def test_on_any_screen_a_plot_is_as_wide_as_its_place_and_nothing_sticks_out(shown):
    page = the_page("A channel of " + "x" * 300)
    for width in (390, 700, 1280):
        seen = shown(page, width=width)
        assert seen.script("document.documentElement.scrollWidth") == width
        assert seen.script(PLOTS) == [0] * 6
        assert seen.script(OUTSIDE) == []
        assert seen.script(TOUCHING) == 0
        assert max(seen.script(ROWS)) < 400


def test_on_a_small_screen_what_a_run_says_is_no_narrow_column(shown):
    (run,) = a_year("late").runs
    said = "already processed up to 2014-01-02T00:00:00Z; nothing is computed. " * 3
    page = the_page("late", runs=[run | {"status": "already_processed", "message": said}])
    for width in (390, 700):
        rows = shown(page, width=width).script(
            "[...document.querySelectorAll('#runs + .table tr')].map((row) => row.clientHeight)"
        )
        assert max(rows) < 200


def test_a_few_days_have_a_few_labels_with_the_year_and_whole_numbers_of_records(shown):
    year = a_year("late")
    few = {"quarantine": year.quarantine[:6].assign(records=1), "channels": year.channels[:34]}
    page = the_page("late", completeness=year.completeness[:60], **few)
    for width in (390, 700, 1280):
        seen = shown(page, width=width)
        assert seen.script(TOUCHING) == 0
        labels = seen.script(
            "[...document.querySelectorAll('.plot text')].map((one) => one.innerHTML)"
        )
        assert labels.count("1 Jan 2013") == 4
        assert "0.5" not in labels


def test_on_paper_no_column_is_cut_and_the_plots_are_drawn_for_its_width(shown):
    paper = shown(the_page("null_arrival"), width=718, medium="print")  # A4 without its margins
    assert max(paper.script(TABLES)) <= 718
    for event, width in (("beforeprint", 700), ("afterprint", 718)):
        paper.script(f"dispatchEvent(new Event('{event}'))")
        assert set(paper.script(PLOTS)) == {width - 718}


def test_years_of_slots_are_a_page_of_less_than_two_megabytes():
    year = a_year("null_arrival").completeness
    edges = ["slot_start", "slot_end", "closed_at"]
    years = [
        year.assign(**{name: year[name] + timedelta(days=366 * number) for name in edges})
        for number in range(4)
    ]
    page = the_page("null_arrival", completeness=pd.concat(years))
    assert len(page.encode()) < 2_000_000
    assert "older years are not shown" in page


def test_pointing_at_a_slot_shows_its_figures(shown):
    seen = shown(the_page("null_arrival"), width=1280)
    seen.script(
        "const box = document.querySelector('.plot svg .ground').getBoundingClientRect();"
        "document.querySelector('.plot svg').dispatchEvent(new PointerEvent('pointermove', "
        "{clientX: box.left + 1, clientY: box.top + box.height * 13.5 / 24, bubbles: true}))"
    )
    tip = seen.script("document.querySelector('.tip').innerText")
    assert "2013-01-01 13:00, for 1h" in tip
    assert "closed, 5h after its end" in tip
    assert "on time 50, late but accepted 3" in tip
    assert "late 1 (1.85 %)" in tip


def test_a_slot_of_a_week_is_pointed_at_on_each_of_its_days(shown):
    weeks = a_year("late").completeness.iloc[[0, 133]].copy()  # a week apart
    weeks["slot_end"] = weeks["slot_start"] + timedelta(days=7)
    seen = shown(the_page("late", completeness=weeks), width=1280)
    box = "document.querySelector('.plot .ground').getBoundingClientRect()"
    left, top, width = (seen.script(f"{box}.{name}") for name in ("left", "top", "width"))
    fourth_day = {"x": left + width * 3.5 / 28, "y": top + 5}
    seen.call("Input.dispatchMouseEvent", type="mouseMoved", **fourth_day)
    tip = seen.script("document.querySelector('.tip').innerText")
    assert tip.startswith("2013-01-01 00:00, for 7d")
    assert "06:00" not in seen.script("document.querySelector('.plot svg').textContent")


def test_hostile_texts_are_shown_and_not_run(opened, harmless):
    dom, asked = opened(the_page(HOSTILE))
    assert asked == []
    assert re.search(r"<title>(.*?)</title>", dom)[1] == "flights · data quality"
    drawing, of_plain_texts = Drawing(dom), harmless[0]
    assert drawing.tags["script"] == of_plain_texts.tags["script"]
    assert drawing.images == of_plain_texts.images
    assert drawing.classes["plot"] == 6
    assert dom.count("&lt;img src=x onerror=") > 2


def test_a_request_that_left_the_page_would_be_noticed(opened):
    _, asked = opened(
        '<img src="http://elsewhere.example/x.png"><script>fetch("https://other.example/y")</script>'
    )
    assert asked == ["http://elsewhere.example/x.png", "https://other.example/y"]
