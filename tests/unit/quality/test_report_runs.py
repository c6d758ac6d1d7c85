"""The report's list of runs, made of the documents that the commands print."""

from __future__ import annotations

import pytest
from run_documents import a_run

from strandline.quality.report.runs import MOST_RUNS, listed_runs, run_lines, runs_left_out

RESULT = {
    "expectation": "expect_books_to_balance",
    "table": "books",
    "severity": "critical",
    "success": False,
    "figures": "1 of 2 books off",
}


def of(severity):
    return RESULT | {"severity": severity}


def test_without_a_run_there_is_no_line():
    assert run_lines([]) == []


def test_a_run_is_shown_by_what_its_document_has():
    diff = {"windows": {"insert": 1200, "update": 3, "delete": 0}, "quarantine": {"delete": 1},
            "completeness": {"insert": 0, "update": 0, "delete": 0}}  # fmt: skip
    (line,) = run_lines(
        [
            a_run(
                status="rejected",
                start="2013-01-01T00:00:00Z",
                end="2013-01-02T06:00:00Z",
                reason="a bug",
                diff=diff,
                audit=[RESULT, {**RESULT, "success": True}],
                message="not published",
            )
        ]
    )
    assert (line["status"], line["tone"]) == ("rejected", "bad")
    assert line["rebuilt"] == ("2013-01-01", "2013-01-02 06:00")
    assert line["changes"] == {"windows": "+1,200 ~3", "quarantine": "−1", "completeness": ""}
    assert len(line["audit"]) == 2
    assert [one["figures"] for one in line["failures"]] == ["1 of 2 books off"]
    assert (line["reason"], line["message"], line["horizon"]) == ("a bug", "not published", "–")
    assert line["at"] == "2013-02-01 06:00"


@pytest.mark.parametrize(
    ("published", "said"), [(True, ""), (False, "not published: "), (None, "planned: ")]
)
def test_changes_that_the_tables_do_not_have_are_called_so(published, said):
    (line,) = run_lines([a_run(diff={"windows": {"insert": 1}}, diff_published=published)])
    assert line["changes_are"] == said


def test_a_run_over_all_windows_or_none_names_no_year_of_one():
    def rebuilt(start, end):
        (line,) = run_lines([a_run(start=start, end=end)])
        return line["rebuilt"]

    midnight = "2013-01-02T00:00:00Z"
    assert rebuilt("0001-01-01T00:00:00Z", midnight) == ("the first one", "2013-01-02")
    assert rebuilt(midnight, midnight) == ()


def test_the_data_cutoff_of_a_run_over_nothing_is_none_and_not_in_the_year_one():
    lines = run_lines([a_run(horizon="0001-01-01T00:00:00Z"), a_run(horizon=None)])
    assert [line["horizon"] for line in lines] == ["none: nothing has arrived", "–"]


def test_the_newest_runs_and_the_last_published_one_are_listed():
    runs = [a_run(f"r-{n}", "published" if n > MOST_RUNS + 2 else "failed") for n in range(60)]
    listed = [run["run_id"] for run in listed_runs(runs)]
    assert listed == [*(f"r-{n}" for n in range(MOST_RUNS)), f"r-{MOST_RUNS + 3}"]
    assert [line["run_id"] for line in run_lines(runs)] == listed
    assert runs_left_out(runs) == 60 - MOST_RUNS
    newest = [a_run("new"), *runs]
    assert len(listed_runs(newest)) == MOST_RUNS


def test_lines_of_runs_that_are_not_listed_need_no_details():
    bare = {name: a_run()[name] for name in ("run_id", "status")}
    assert len(run_lines([*[a_run(f"r-{n}") for n in range(MOST_RUNS)], bare])) == MOST_RUNS


@pytest.mark.parametrize(
    ("status", "tone"),
    [
        *[(one, "good") for one in ("published", "repeated", "already_processed")],
        *[(one, "bad") for one in ("rejected", "failed", "dead")],
        *[(one, "open") for one in ("interrupted", "running", "unknown", "prepared", "dropped")],
    ],
)
def test_each_state_of_a_run_has_a_colour(status, tone):
    (line,) = run_lines([a_run(status=status)])
    assert (line["status"], line["tone"]) == (status, tone)


@pytest.mark.parametrize(
    ("severities", "reason", "verdict"),
    [
        (["warning"], None, "1 warning"),
        (["warning", "info", "warning"], None, "2 warnings; 1 info"),
        (["critical"], "known", "1 critical finding, accepted: known"),
        (
            ["info", "warning", "critical"],
            "known",
            "1 critical finding, accepted: known; 1 warning; 1 info",
        ),
        (["critical", "critical"], None, "2 critical findings, accepted"),
    ],
)
def test_a_published_run_is_said_with_its_findings_by_severity(severities, reason, verdict):
    audit = [of(severity) for severity in severities]
    (line,) = run_lines([a_run(audit=[*audit, RESULT | {"success": True}], reason=reason)])
    assert line["verdict"] == verdict


def test_nobody_has_accepted_the_findings_of_a_rejected_run():
    (line,) = run_lines([a_run(status="rejected", audit=[RESULT], reason="a bug")])
    assert line["verdict"] == "1 critical finding"


def test_a_reverted_run_is_not_green():
    (line,) = run_lines([a_run(reverted_by="later")])
    assert (line["status"], line["reverted_by"], line["tone"]) == ("published", "later", "open")


def test_a_run_says_on_which_engine_it_was_computed_and_an_old_one_nothing():
    new, old = run_lines([a_run("new", engine="sail", engine_version="0.7.2"), a_run("old")])
    assert (new["engine"], old["engine"]) == ("sail 0.7.2", "")
