"""The report as a page: what it says, and that nothing in the tables can become part of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser

import pandas as pd
import pytest
from joined import JOIN
from run_documents import a_run

from strandline.quality.report.held_back_by import HeldBack, held_back_by
from strandline.quality.report.page import build_report
from strandline.quality.report.tables import ReportTables, ShownDays
from strandline.spec import load_spec, parse_spec

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>&%{x}"


BOUNDED = {"strategy": "bounded_out_of_orderness", "bound": "3h"}


def a_spec(channels="discovered", window=None, allowed_lateness="2h", watermark=BOUNDED, **quality):
    return parse_spec(
        {
            "pipeline": "flights",
            "source": {
                "table": "landing/flights",
                "arrival_time": "landed_at",
                "event_time": "departed_at",
                "channel": "origin",
                "channels": channels,
            },
            "watermark": watermark,
            "window": window or {"tumbling": "1h"},
            "allowed_lateness": allowed_lateness,
            "firings": window is not None,
            "quality": quality,
        },
        origin="flights.yaml",
    )


TOTALS = {"slots": 1, "windows": 1, "quarantine": 1}
OF_ONE_DAY = TOTALS | {"first_day": "2013-01-05", "last_day": "2013-01-05"}
SHOWN = ShownDays(date(2013, 1, 5), None, OF_ONE_DAY)


def tables(text="late", rows=True):
    instant = pd.Timestamp("2013-01-05T06:00Z")
    result = {"expectation": text, "table": text, "severity": "critical", "success": False,
              "figures": text}  # fmt: skip
    found = ReportTables(
        completeness=pd.DataFrame(
            {
                "slot_start": [instant],
                "slot_end": [instant + pd.Timedelta(hours=1)],
                "state": [text],
                "gap": [False],
                "fired_at": [instant],
                "closed_at": [instant],
                "on_time": [9_700],
                "late_accepted": [200],
                "late": [100],
                "missed": [100],
                "no_window": [0],
            }
        ),
        quarantine=pd.DataFrame({"reason": [text], "day": [date(2013, 1, 5)], "records": [100]}),
        lateness=pd.DataFrame({"late_by_ms": [60_000], "records": [100]}),
        channels=pd.DataFrame(
            {
                "channel": [text],
                "arrival_date": [date(2013, 1, 5)],
                "settled_ms": [1_357_360_000_000],
            }
        ),
        runs=[
            a_run(
                text,
                "rejected",
                kind=text,
                start="2013-01-05T06:00:00Z",
                end="2013-01-05T06:00:00Z",
                horizon="2013-01-05T06:00:00Z",
                diff={text: {"insert": 1}},
                audit=[result],
                reason=text,
                requested_by=text,
                accepted_loss=text,
                message=text,
            )
        ],
    )
    if rows:
        return found
    frames = {n: part for n, part in vars(found).items() if isinstance(part, pd.DataFrame)}
    return ReportTables(**{name: frame.iloc[:0] for name, frame in frames.items()}, runs=[])


class Page(HTMLParser):
    """What a browser would make of the page, as far as it matters here."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.links, self.figures, self.texts = [], [], [], []
        self.policy = ""
        self._script = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.links += [found[name] for name in ("src", "href") if name in found]
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        self._script = found.get("type", "code") if tag == "script" else None

    def handle_endtag(self, tag):
        self._script = None

    def handle_data(self, data):
        if self._script == "application/json":
            self.figures.append(json.loads(data))
        elif self._script is None:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def page_of(found, spec=None):
    spec = spec or a_spec()
    shown = replace(SHOWN, totals=OF_ONE_DAY | {spec.result: 1})
    made = build_report(found, spec=spec, made_from="ledger position 1", shown=shown)
    return Page(made.html)


def test_a_value_stands_for_itself_whichever_way_it_is_read_and_each_head_names_its_column():
    found = pd.DataFrame([("late", "city", "القاهرة", 90), ("late", "city", "Oslo", 10)],
                         columns=["group", "column", "value", "records"])  # fmt: skip
    found = found.assign(of=100, is_least=False)
    found = replace(tables(), values=found)
    made = build_report(found, spec=a_spec(), made_from="", shown=SHOWN).html
    assert "city = <bdi>القاهرة</bdi>: 90 of 100.</b>" in made
    assert "<bdi>late</bdi></th>" in made
    assert re.search(r"<th\b(?! scope)", made) is None


def test_of_one_row_it_says_one():
    text = page_of(tables()).text
    assert "In all, of 2013-01-05: 1 slot, 1 window, 1 record in quarantine." in text


def test_the_command_for_other_days_is_one_that_can_be_typed():
    nothing = dict.fromkeys(TOTALS, 0)
    before_all = ShownDays(date(2023, 12, 5), None, nothing | {"first_day": None, "last_day": None})
    text = Page(build_report(tables(), spec=a_spec(), made_from="", shown=before_all).html).text
    assert "strandline report flights --since 2023-12-05 ; where" in text


def test_the_command_for_other_days_names_the_days_that_there_are():
    """It repeated the days shown, and of days that no slot has it was one that is refused."""
    found, after_all = tables(rows=False), ShownDays(date(2015, 1, 1), None, OF_ONE_DAY)
    text = Page(build_report(found, spec=a_spec(), made_from="", shown=after_all).html).text
    assert "strandline report flights --since 2013-01-05 --until 2013-01-05 ; where" in text
    for of_these_days in (
        "No slot on these days.",
        "Nothing of these days is in quarantine.",
        "No record of these days is late.",
    ):
        assert of_these_days in text
    assert "No slot yet" not in text


def test_what_is_usual_is_spoken_of_once_it_is_known():
    mondays = [date(2013, 1, 7) + timedelta(weeks=week) for week in range(5)]
    for days, is_known in ((mondays[:4], False), (mondays, True)):
        text = page_of(replace(tables(), records=dict.fromkeys(days, 9))).text
        assert "Records by arrival day, without malformed rows" in text
        assert ("behind them what is usual" in text) == is_known


@pytest.mark.parametrize(
    ("window", "said"),
    [
        ({"count": 5, "every": 2}, "count 5 every 2 windows"),
        ({"count": 5}, "count 5 windows"),
        ({"global": {}}, "global windows"),
        ({"session": "gap_ms"}, "session gap_ms windows"),
        (
            {"sliding": "1h", "every": "90s", "offset": "-5s"},
            "sliding 1h every 1m 30s offset −5s w",
        ),
    ],
)
def test_the_windows_are_named_as_the_file_has_them(window, said):
    spec = a_spec(window=window, allowed_lateness="0s")
    assert f" {said}" in page_of(tables(), spec).text


def test_of_results_the_watermark_is_that_of_the_other_pipeline(tmp_path):
    hours = {
        "pipeline": "hours",
        "source": {"table": "landing/t", "arrival_time": "landed_at", "event_time": "ts"},
        "watermark": {"strategy": "bounded_out_of_orderness", "bound": "3h"},
        "window": {"tumbling": "1h"},
        "firings": True,
    }
    days = {"pipeline": "days", "source": {"pipeline": "hours"}, "window": {"tumbling": "1d"}}
    for content in (hours, days):
        (tmp_path / f"{content['pipeline']}.yaml").write_text(json.dumps(content))
    spec = load_spec(tmp_path / "days.yaml")
    text = page_of(replace(tables(), channels=tables().channels.iloc[:0]), spec).text
    assert "tumbling 1d windows the watermark of hours allowed" in text
    assert "Watermarks The watermark of hours: see its report." in text


def test_a_watermark_that_follows_the_clock_is_told_though_no_channel_has_one():
    spec = a_spec(watermark={"strategy": "time_lag", "lag": "1h"})
    watermark = HeldBack(1_357_344_000_000, None, None, None)
    text = page_of(replace(tables(rows=False), watermark=watermark), spec).text
    assert "The watermark follows the clock, and is at 2013-01-05T00:00:00Z." in text


def test_of_an_interval_join_nothing_is_said_of_lateness_or_windows():
    text = page_of(tables(), parse_spec(JOIN, origin="near.yaml")).text
    for said in ("accepted 200 2.00 % Late", "arrived behind the watermark", "slots close"):
        assert said in text
    said = text[text.index("near data quality") :].lower()
    assert "lateness" not in said
    assert "window" not in said


@pytest.mark.parametrize(
    ("spec", "is_told"),
    [
        (a_spec(), True),
        (a_spec(window={"session": "30m"}, allowed_lateness="0s"), False),
        (parse_spec(JOIN, origin="near.yaml"), False),
    ],
    ids=["tumbling", "sessions", "join"],
)
def test_advise_is_told_only_where_it_answers(spec, is_told):
    assert (f"strandline advise {spec.pipeline}" in page_of(tables(), spec).text) == is_told


def test_the_page_tells_what_became_of_the_records():
    text = page_of(tables(), a_spec(max_late_share=0.02)).text
    assert "The last run was rejected: the tables are as the run before left them." in text
    assert "made from ledger position 1" in text
    assert "On time 9,700 97.0 % of accepted and late records" in text
    assert "Late, quarantined 100 1.00 %, limit 2 %" in text
    assert "late 100 arrived after its window had closed" in text
    assert "tumbling 1h windows bounded_out_of_orderness 3h allowed lateness 2h" in text


def lead_of(*runs, **progress):
    """The page's text about runs, from the sentence about the last one on."""
    found = replace(tables(), runs=runs, **progress)
    return page_of(found).text.partition("The last run ")[2]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("published", "was published; it had no audit."),
        ("rejected", "was rejected: the tables are as the run before left them."),
        ("failed", "failed: the tables are as the run before left them."),
        ("repeated", "could change nothing."),
        ("already_processed", "was for an earlier midnight: it computed nothing."),
        ("dropped", "was dropped: it publishes nothing."),
        ("prepared", "is prepared, and waits for strandline runs publish flights r-1 ."),
        ("interrupted", "was interrupted before it ended."),
        ("dead", "was killed, or could not write its last step: the next one clears up after it."),
        ("running", "is running."),
        ("unknown", "is running, or was killed, on another host: it has not ended."),
    ],
)
def test_the_lead_says_what_became_of_the_last_run(status, said):
    assert lead_of(a_run("r-1", status)).startswith(said)


def test_the_lead_names_a_last_step_that_only_a_later_version_knows_and_no_host():
    last = a_run("r-1", "unknown", step="verified", step_of_later_version=True)
    text = page_of(replace(tables(), runs=(last,))).text
    assert "not known: its last step, verified, is of a later version." in text
    assert "on another host" not in text


def test_the_lead_says_once_that_a_midnight_was_processed_already():
    message = "already processed up to 2014-01-02T00:00:00Z; nothing is computed."
    lead = lead_of(a_run("r-1", "already_processed", message=message))
    assert lead.startswith(f"was for an earlier midnight: {message} Last rebuilt")


def test_critical_findings_that_somebody_accepted_are_no_warnings():
    def result(severity):
        return {"expectation": "e", "table": "t", "severity": severity, "success": False,
                "figures": "9 of 9"}  # fmt: skip

    audit = [result("critical"), result("warning")]
    last = a_run("r-2", audit=audit, reason="a holiday")
    text = lead_of(last, a_run("r-1", audit=[result("info"), result("warning")]))
    said = "1 critical finding, accepted: a holiday; 1 warning"
    assert text.startswith(f"was published, with {said}.")
    assert "before it: run r-1 , 2013-02-01 06:00, published, with 1 warning; 1 info" in text


def test_processed_up_to_is_what_the_pipeline_stands_for_now_whatever_runs_had_reached():
    progress = {"processed_ms": 1_357_344_000_000, "closed_ms": 1_357_336_800_000}
    text = lead_of(a_run("r-1"), **progress)
    assert "Processed up to 2013-01-05 Closed up to 2013-01-04 22:00 Rules" in text
    assert "Processed up to – Closed up to the last slot Rules" in lead_of(a_run("r-1"))
    found = replace(tables(), **progress)
    made = build_report(found, spec=a_spec(), made_from="x", shown=SHOWN)
    assert made.summary["processed_up_to"] == "2013-01-05"
    assert made.summary["runs"] == 1


def test_changes_that_were_not_published_are_not_shown_as_changes():
    diff = {"windows": {"insert": 7, "update": 0, "delete": 0}}
    dead, rejected, done = (a_run(one, one, diff=diff) for one in ("dead", "rejected", "published"))
    text = lead_of(dead, rejected, done)
    assert text.count("windows +7") == 3
    assert text.count("not published: windows +7") == text.count("planned: windows +7") == 1


def test_a_run_that_accepts_missing_rows_says_why():
    text = lead_of(a_run(accepted_loss="the sensor was replaced"))
    assert "accepts missing rows: the sensor was replaced" in text


def test_the_page_has_every_plot():
    kinds = [figure["kind"] for figure in page_of(tables()).figures]
    assert kinds == ["heat", "heat", "bars", "lines", "lines"]


def test_a_first_run_has_an_empty_but_whole_page():
    nothing = ShownDays(None, None, dict.fromkeys(OF_ONE_DAY, 0))
    page = Page(build_report(tables(rows=False), spec=a_spec(), made_from="", shown=nothing).html)
    assert page.figures == []
    for text in (
        "WARNING: nothing has been rebuilt yet",
        "No slot yet: no window has a record yet.",
        "Nothing is in quarantine.",
        "No record is late.",
        "No channel has a watermark yet.",
        "No run has been audited yet.",
        "The ledger is empty.",
    ):
        assert text in page.text


def test_malformed_rows_without_a_day_are_in_quarantine():
    """A tile counted them, and below it nothing was in quarantine."""
    of_no_day = pd.DataFrame({"reason": ["null_arrival"], "day": [None], "records": [2]})
    page = page_of(replace(tables(rows=False), quarantine=of_no_day))
    assert "Nothing is in quarantine." not in page.text
    assert "Reason Records What it means null_arrival 2" in page.text


def test_late_records_whose_rows_were_removed_are_not_said_to_be_none():
    """Upkeep had removed them by `quarantine_days`, and the report said that no record is late."""
    full, nothing = tables(), tables(rows=False)
    gone = replace(full, quarantine=nothing.quarantine, lateness=nothing.lateness)
    text = page_of(gone).text
    assert "Late, quarantined 100" in text
    assert "No record is late." not in text
    assert "No row of a late record is in quarantine any more" in text


def test_nothing_in_the_tables_becomes_markup():
    harmless, page = page_of(tables()), page_of(tables(HOSTILE), a_spec())
    assert page.tags == harmless.tags
    assert "img" not in page.tags
    assert HOSTILE in page.text
    named = [one["name"] for figure in page.figures for one in figure.get("series", ())]
    assert named.count(HOSTILE) == 2  # as data: the page's script sets every text as text


def test_the_page_refers_to_nothing_else():
    page = page_of(tables())
    assert page.links == []
    assert page.policy.startswith("default-src 'none';")


def brightness(colour):
    """The relative luminance of a colour such as `#6baed6`, as of WCAG."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_gap_stands_out_against_closed_slots_in_light_and_dark_and_on_paper():
    html = build_report(tables(), spec=a_spec(), made_from="", shown=SHOWN).html
    colours = re.findall(r"--closed: (#\w+);.* --gap: (#\w+);", html)
    assert len(colours) == 3
    for pair in colours:
        darker, lighter = sorted(map(brightness, pair))
        assert (lighter + 0.05) / (darker + 0.05) > 3


def test_each_plot_has_its_figures_as_a_table():
    page = page_of(tables())
    behind = [text for text in page.texts if text.startswith("Figures: ")]
    assert len(behind) == len(page.figures)
    assert "2013-01-05 1 0 0 0 9,700 200 100 1.00 %".replace("1 0 0 0", "0 0 0 0") in page.text


def test_a_late_record_of_overlapping_windows_is_missing_in_each_and_quarantined_once():
    found = tables()
    found.completeness["missed"] = 300
    sliding = a_spec(window={"sliding": "3h", "every": "1h"}, max_late_share=0.5)
    text = page_of(found, sliding).text
    assert "9,700 95.1 % of accepted and late records, each in all of its windows" in text
    late = "Late, quarantined 100 2.94 % if each counts in all of its windows"
    limit = "limit 50 % if each counts once, in its newest window"
    assert f"{late}, {limit} Malformed" in text
    found.completeness["missed_at_least"] = [True]
    assert late.replace("2.94", "at least 2.94") in page_of(found, sliding).text


@pytest.mark.parametrize(
    ("gaps", "said"), [("allow", "allowed, not listed"), ("warn", "slots without")]
)
def test_gaps_are_counted_unless_they_are_allowed(gaps, said):
    assert (
        f"Gaps {'–' if gaps == 'allow' else '0'} {said}"
        in page_of(tables(), a_spec(gaps=gaps)).text
    )


def page_with_watermark(spec):
    found = tables("EWR")
    watermark = held_back_by(found.channels, spec)
    return page_of(replace(found, watermark=watermark), spec)


def test_a_silent_declared_channel_is_named():
    page = page_with_watermark(a_spec(channels=["EWR", "JFK"]))
    assert "No watermark yet from JFK : a declared channel that has not spoken" in page.text
    assert "none; held by channel JFK, which has never offered one" in page.text


def test_a_channels_name_is_visible_text_in_the_line_of_the_watermark():
    hostile = "\x1b[31m\u202eJFK"
    page = page_with_watermark(a_spec(channels=["EWR", hostile]))
    assert r"held by channel \x1b[31m\u202eJFK, which has never" in page.text
    assert hostile not in page.text
