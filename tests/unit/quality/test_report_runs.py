"""The ledger as the report tells it."""

from __future__ import annotations

import json
from datetime import datetime

import pandas as pd

from strandline.quality.report.runs import run_lines

COLUMNS = [
    "position", "run_id", "attempt", "step", "written_at", "kind", "range_start", "range_end",
    "horizon", "closed", "frontier", "diff", "audit", "reason", "requested_by", "message",
    "engine", "engine_version",
]  # fmt: skip
RESULT = {
    "expectation": "expect_books_to_balance",
    "table": "books",
    "severity": "critical",
    "success": False,
    "figures": "1 of 2 books off",
}


def a_ledger(*steps):
    rows = [
        {"position": number, "written_at": pd.Timestamp("2013-02-01T06:00Z"), **step}
        for number, step in enumerate(steps, start=1)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_an_empty_ledger_has_no_lines():
    assert run_lines(a_ledger()) == []


def test_a_run_is_told_by_the_last_that_its_steps_said():
    days = {
        "range_start": pd.Timestamp("2013-01-01T00:00Z"),
        "range_end": pd.Timestamp("2013-01-02T06:00Z"),
    }
    diff = {"windows": {"insert": 1200, "update": 3, "delete": 0}, "quarantine": {"delete": 1},
            "completeness": {"insert": 0, "update": 0, "delete": 0}}  # fmt: skip
    (line,) = run_lines(
        a_ledger(
            {"run_id": "a", "attempt": 1, "step": "started", "reason": "a bug", **days},
            {"run_id": "a", "attempt": 1, "step": "audited", "diff": json.dumps(diff),
             "audit": json.dumps([RESULT, {**RESULT, "success": True}])},
            {"run_id": "a", "attempt": 1, "step": "rejected", "message": "not published"},
        )
    )  # fmt: skip
    assert (line.outcome, line.tone) == ("rejected", "bad")
    assert line.rebuilt == ("2013-01-01", "2013-01-02 06:00")
    assert line.changes == {"windows": "+1,200 ~3", "quarantine": "−1", "completeness": ""}
    assert len(line.audit) == 2
    assert [one.figures for one in line.failures] == ["1 of 2 books off"]
    assert (line.reason, line.message, line.horizon) == ("a bug", "not published", "–")


def test_a_run_over_all_windows_or_none_names_no_year_of_one():
    def rebuilt(start, end):
        edges = {"range_start": datetime.fromisoformat(start), "range_end": pd.Timestamp(end)}
        (line,) = run_lines(a_ledger({"run_id": "a", "attempt": 1, "step": "published", **edges}))
        return line.rebuilt

    first = "0001-01-01T00:00+00:00"
    assert rebuilt(first, "2013-01-02T00:00Z") == ("the first", "2013-01-02")
    assert rebuilt("2013-01-02T00:00+00:00", "2013-01-02T00:00Z") == ()


def test_attempts_are_lines_of_their_own_the_last_written_first():
    lines = run_lines(
        a_ledger(
            {"run_id": "a", "attempt": 1, "step": "started"},
            {"run_id": "b", "attempt": 1, "step": "started"},
            {"run_id": "b", "attempt": 1, "step": "published"},
            {"run_id": "a", "attempt": 2, "step": "published"},
        )
    )
    found = [(line.run_id, line.attempt, line.outcome, line.tone) for line in lines]
    assert found == [
        ("a", 2, "published", "good"),
        ("b", 1, "published", "good"),
        ("a", 1, "started", "open"),
    ]


def test_a_run_says_on_which_engine_it_was_computed_and_an_old_one_nothing():
    of = {"attempt": 1, "step": "published"}
    new, old = run_lines(
        a_ledger(
            {"run_id": "old", **of},
            {"run_id": "new", **of, "engine": "sail", "engine_version": "0.7.2"},
        )
    )
    assert (new.engine, old.engine) == ("sail 0.7.2", "")
