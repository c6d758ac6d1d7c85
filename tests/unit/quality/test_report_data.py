"""The report about the data: its state, what has changed, who is late, volume, revisions."""

from __future__ import annotations

from datetime import date, timedelta

import pandas as pd
from run_documents import a_run

from strandline.model.intervals import midnight_of
from strandline.quality.findings.check import Finding
from strandline.quality.findings.volume import Unusual, UsualVolume
from strandline.quality.report.advised import advised
from strandline.quality.report.quarantine import who
from strandline.quality.report.runs import revisions_plot, run_lines
from strandline.quality.report.state import State, changes_since, summary_of
from strandline.quality.report.volume import volume

HOUR_MS = 3_600_000
MONDAY = date(2013, 1, 7)


# ----------------------------------------------------------------------------------------- state


def a_finding(severity="warning", sentence="12 % malformed", name="max_malformed_share"):
    return Finding(name, severity, sentence)


def the_state(*findings):
    return State.of(findings, run_lines([a_run()]))


def test_without_a_finding_the_first_line_is_ok():
    state = the_state()
    assert (str(state), state.tone, state.needs_list) == ("OK", "good", False)


def test_a_warning_is_open_and_the_gravest_finding_comes_first():
    state = the_state(a_finding())
    assert (str(state), state.tone) == ("WARNING: 12 % malformed", "open")
    state = the_state(a_finding(), a_finding("critical", "9 of 9", "gaps"))
    assert (str(state), state.tone) == ("CRITICAL: 9 of 9 (and 1 more)", "bad")
    assert [one.name for one in state.findings] == ["gaps", "max_malformed_share"]
    assert state.needs_list


def test_a_long_finding_is_cut_in_the_first_line_and_whole_below():
    state = the_state(a_finding(sentence="word " * 60))
    assert len(str(state)) < 150
    assert state.needs_list
    both = the_state(a_finding(sentence="word " * 60), a_finding())
    assert str(both).endswith("word … (and 1 more)")


def test_before_any_run_it_says_so():
    assert str(State.of((), ())) == "WARNING: nothing has been rebuilt yet"


# --------------------------------------------------------------------------------- since the last


def a_summary(**changes):
    totals = {"slots": 10, "windows": 100, "quarantine": 5, "first_day": "2013-01-01"}
    given = {"made_at": "2013-01-02 06:00", "runs": 2, "processed_up_to": "2013-01-02",
             "state": "OK", "totals": totals} | changes  # fmt: skip
    return summary_of(given.pop("totals"), **given)


def test_what_has_changed_since_the_report_before_is_said():
    now = a_summary(
        runs=3,
        processed_up_to="2013-01-03",
        state="1 warning",
        totals={"slots": 34, "windows": 98, "quarantine": 5},
    )
    changes = changes_since(a_summary(), now)
    assert changes.made_at == "2013-01-02 06:00"
    assert changes.texts == (
        "state was “OK”",
        "processed up to 2013-01-03 (was 2013-01-02)",
        "+1 run",
        "+24 slots",
        "-2 windows",
    )
    assert changes_since(a_summary(), a_summary()).texts == ()
    assert changes_since(None, now) is None
    assert changes_since({"slots": "many"}, now).texts  # a file that somebody has edited


# ------------------------------------------------------------------------------------------ volume


def test_what_is_usual_is_the_median_of_the_same_weekday_and_some_width():
    rows = {MONDAY - timedelta(weeks=week): 100 for week in range(1, 9)}
    assert UsualVolume.of(rows, MONDAY) == UsualVolume(100, 70, 130)
    spread = {MONDAY - timedelta(weeks=week): 50 * week for week in range(1, 9)}
    usual = UsualVolume.of(spread, MONDAY)
    low, high = usual.least, usual.most
    assert (low, round(high)) == (0, round(225 + 3 * 1.4826 * 100))


def test_of_fewer_than_four_weeks_nothing_is_usual():
    rows = {MONDAY - timedelta(weeks=week): 100 for week in range(1, 4)}
    assert UsualVolume.of(rows, MONDAY) is None
    other_days = {MONDAY - timedelta(days=day): 100 for day in range(1, 50) if day % 7}
    assert UsualVolume.of(other_days, MONDAY) is None


def test_nothing_is_usual_in_the_first_weeks_of_all_dates():
    assert UsualVolume.of({date.min: 1}, date.min) is None


def test_only_days_that_are_shown_are_drawn_and_unusual_ones_are_named():
    rows = {MONDAY - timedelta(weeks=week): 100 for week in range(1, 9)} | {MONDAY: 10}
    found = volume(rows, MONDAY - timedelta(weeks=1), None)
    assert found.unusual == (Unusual(MONDAY, 10, UsualVolume(100, 70, 130)),)
    assert found.figure.data["x"] == [0, 7]
    assert found.figure.data["band"] == [[70, 130], [70, 130]]
    assert [one.name for one in found.figure.series][-1] == "usual"
    assert [one["values"] for one in found.figure.data["series"]] == [[100, 0], [0, 10]]
    assert volume({}, None, None).figure is None
    assert volume(rows, MONDAY + timedelta(1), None).figure is None


def test_days_without_a_record_are_drawn_and_named_up_to_the_last_processed_one():
    rows = {MONDAY - timedelta(weeks=week): 100 for week in range(1, 9)}
    rows |= {MONDAY - timedelta(weeks=week, days=-2): 50 for week in range(1, 9)}
    until_thursday = midnight_of(MONDAY + timedelta(3))
    silent = volume(rows, MONDAY - timedelta(weeks=1), None, processed_ms=until_thursday)
    assert [(one.day, one.records) for one in silent.unusual] == [
        (MONDAY, 0),
        (MONDAY + timedelta(2), 0),
    ]
    assert silent.figure.data["x"] == [0, 2, 7, 9]
    assert silent.figure.data["band"][2:] == [[70, 130], [35, 65]]
    until_tuesday = volume(
        rows, MONDAY - timedelta(weeks=1), MONDAY + timedelta(1), processed_ms=until_thursday
    )
    assert [one.day for one in until_tuesday.unusual] == [MONDAY]


def test_days_without_a_record_are_drawn_from_the_first_shown_one_on_though_no_shown_one_has_any():
    rows = {MONDAY - timedelta(number): 1_000 for number in range(1, 61)}
    silence = [MONDAY + timedelta(number) for number in range(6)]
    processed = midnight_of(MONDAY + timedelta(6))
    outage = volume(rows, MONDAY, None, processed_ms=processed)
    assert [(one.day, one.records) for one in outage.unusual] == [(day, 0) for day in silence]
    assert outage.figure.data["x"] == [0, 1, 2, 3, 4, 5]
    rows |= {MONDAY + timedelta(number): 1_000 for number in range(6, 10)}
    over = volume(rows, MONDAY, None, processed_ms=midnight_of(MONDAY + timedelta(10)))
    assert [one.day for one in over.unusual] == silence
    assert over.figure.data["x"] == [*range(10)]


def test_a_day_of_the_first_or_of_the_last_year_asks_for_no_volume_of_all_the_days_between(
    monkeypatch,
):
    rows = {MONDAY - timedelta(number): 1_000 for number in range(60)}
    asked, of = [], UsualVolume.of
    monkeypatch.setattr(UsualVolume, "of", lambda *given: asked.append(given) or of(*given))
    found = volume(rows | {date.min: 0, date.max: 0}, None, None)
    assert found.figure.data["x"][0] == 0
    assert len(asked) < 500


# --------------------------------------------------------------------------------------------- who


def counted(**columns):
    rows = [
        ("late", column, value, many, sum(values.values()), False)
        for column, values in columns.items()
        for value, many in values.items()
    ]
    names = ["group", "column", "value", "records", "of", "is_least"]
    return pd.DataFrame(rows, columns=names)


def test_the_value_that_stands_out_most_comes_first():
    destinations = {"HNL": 699, "SFO": 111, "LAX": 24, None: 9}
    (found,) = who(
        counted(
            origin={"JFK": 444, "EWR": 399},
            dest=destinations,
            letter=dict.fromkeys("abcdefghijkl", 70),
        ),
        always=["origin"],
    )
    assert (found.found.column, found.found.values[0].value, found.records) == ("dest", "HNL", 843)
    # no letter stands out
    assert [column.column for column in found.columns] == ["dest", "origin"]
    first = found.columns[0]
    assert [(one.value, one.records) for one in first.values][-1] == ("(null)", 9)
    assert first.values[0].share == "82.9 %"


def test_a_column_that_is_one_value_among_the_late_but_not_among_all_stands_out():
    rows = pd.concat([counted(dest={"HNL": 3}), counted(dest={"LAX": 5}).assign(group="malformed")])
    late, malformed = who(rows)
    assert late.found.values[0].value == "HNL"
    assert malformed.group == "malformed"


def test_a_column_that_is_one_value_among_the_late_stands_out_though_nobody_else_is_counted():
    """The malformed rows have too many values, none of them frequent."""
    (late,) = who(counted(device={"bad": 100}))
    assert (late.found.column, late.found.values[0].value) == ("device", "bad")


def test_a_column_that_is_only_listed_always_is_no_find():
    (found,) = who(counted(key={"f": 110, **dict.fromkeys("abcde", 93)}), always=["key"])
    assert (found.found, len(found.columns)) == (None, 1)
    one_of_two = counted(key={"a": 6, "b": 4}, dest={"HNL": 10})
    others = counted(dest={"LAX": 1}).assign(group="malformed")
    late, _ = who(pd.concat([one_of_two, others]), always=["key"])
    assert late.found.values[0].value == "HNL"


def test_of_nothing_nobody_stands_out():
    assert who(counted()) == ()


# -------------------------------------------------------------------------------- revisions, advice


def test_revisions_are_what_published_runs_have_updated_or_removed():
    def diff(**windows):
        return {"windows": {"insert": 5, "update": 0, "delete": 0} | windows}

    later = "2013-02-03T06:00:00Z"
    drawn = revisions_plot(
        [
            a_run("e"),
            a_run("d", "rejected", diff=diff(update=99)),
            a_run("c", diff=diff(update=2, delete=4), ended=later),
            a_run("b", diff=diff(update=3)),
            a_run("a", diff=diff()),
        ]
    )
    assert drawn.table.rows == (("2013-02-01", "3", "0", "2"), ("2013-02-03", "2", "4", "1"))
    assert drawn.data["x"] == [0, 2]
    assert revisions_plot([a_run(diff=diff())]) is None
    assert revisions_plot([]) is None


def test_the_advice_is_drawn_up_to_where_nothing_is_lost():
    def row(hours, lost):
        return {"total_ms": hours * HOUR_MS, "lost": lost, "share_lost": lost / 100,
                "final_after_ms": (hours + 1) * HOUR_MS, "final_after_ms_95": None}  # fmt: skip

    setting = {"bound_ms": HOUR_MS, "allowed_lateness_ms": 0}
    advice = {
        "records": 100, "bound_name": "bound", "keep": "99%", "made_at": "then",
        "settings": [row(0, 50), row(1, 5), row(2, 0), row(3, 0)],
        "in_force": row(1, 5) | setting, "smallest": None,
    }  # fmt: skip
    found = advised(advice)
    assert found.figure.data["x"] == [0, 1, 2]
    assert found.figure.data["series"][0]["values"] == [50, 5, 0]
    assert found.delays.data["series"][1]["values"] == [None, None, None]
    assert found.sentences == (
        "In force: bound 1h, allowed lateness 0s loses 5 of 100 records (5.00 %), windows are "
        "final after 2h.",
    )
    assert advised(None) is None
    assert advised({"records": 0}) is None
