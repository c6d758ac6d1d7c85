"""The page of a run: what it says of slots, which a published one may know in part only."""

from __future__ import annotations

import pytest

from strandline.cli import show
from strandline.model.intervals import DAY_MS, TimeRange
from strandline.pipeline.request.outcome import Outcome


@pytest.mark.parametrize(
    ("slots", "gaps", "line"),
    [
        ({"closed": 2}, 12, ["slots", "2", "closed;", "gaps", "12"]),
        ({}, 12, ["gaps", "12"]),  # published later: its states are not in the ledger
        ({}, 0, []),
    ],
)
def test_a_run_whose_slots_are_not_known_does_not_say_that_there_are_none(
    capsys, slots, gaps, line
):
    show.outcome(Outcome("meter", "advance", dry_run=False, slots=slots, gaps=gaps).to_json())
    lines = [one.split() for one in capsys.readouterr().out.splitlines()]
    assert [one for one in lines if one[:1] in (["slots"], ["gaps"])] == ([line] if line else [])


def test_what_a_dry_run_shows_first_has_its_notes_and_its_findings_are_the_runs(capsys):
    failed = {"expectation": "volume", "table": "t", "severity": "critical", "success": False}
    first = Outcome(
        *("days", "backfill"),
        dry_run=True,
        status="would be rejected",
        range=TimeRange(0, DAY_MS),
        audit=[failed | {"figures": "1 of 9"}],
        notes=["publishers: one", "stays closed"],
    )
    run = Outcome("days", "advance", dry_run=True, notes=["publishers: one"], rebuilt_first=[first])
    shown = run.to_json()
    assert [one["severity"] for one in shown["findings"]] == ["critical"]
    show.outcome(shown)
    lines = capsys.readouterr().out.splitlines()
    assert [one for one in lines if one.startswith("note: ")] == [
        *("note: stays closed", "note: publishers: one")
    ]


def a_preview(**quarantine):
    return {"quarantine": {"gained": {}, "changed": {}, "lost": {}} | quarantine, "days": []}


@pytest.mark.parametrize(
    ("facts", "last_line"),
    [
        ({}, "nothing changes: the published rows are those of this run"),
        (
            {"quarantined": {"insert": 600, "update": 0, "delete": 0}},
            "no result changes: only malformed rows of quarantine do",
        ),
        (  # which an earlier run has quarantined
            {"malformed": {"null_arrival": 600}, "quarantined": {"insert": 0}},
            "nothing changes: the published rows are those of this run",
        ),
        (
            {"preview": a_preview(gained={"null_arrival": 600})},
            "no result changes: only malformed rows of quarantine do",
        ),
        (
            {"preview": a_preview(), "malformed": {"null_arrival": 600}},
            "nothing changes: the published rows are those of this run",
        ),
        (
            {"changed_first": ["advance-1-first"], "quarantined": {"insert": 600}},
            "run advance-1-first first changed what is published; nothing else changes",
        ),
        ({"diff": {"windows": {"insert": 1, "update": 0, "delete": 0}}}, None),
    ],
)
def test_a_run_says_that_nothing_changes_only_where_nothing_does(
    capsys, monkeypatch, facts, last_line
):
    monkeypatch.setenv("COLUMNS", "200")
    show.outcome(Outcome("meter", "advance", **facts).to_json())
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == last_line or (last_line is None and "change" not in last)


@pytest.mark.parametrize(
    ("changes", "end_of_line"),
    [
        ({}, "2024-03-01T00:00:00Z 2024-03-02T00:00:00Z 5 rows"),
        (
            {"status": "rejected", "diff_published": False},
            "2024-03-02T00:00:00Z 5 rows, not published",
        ),
        ({"status": "failed", "diff": None, "diff_published": None}, "2024-03-02T00:00:00Z –"),
        ({"status": "failed", "diff_published": None}, "2024-03-02T00:00:00Z 5 rows planned"),
        ({"kind": "erase", "status": "erased", "start": None, "end": None}, "2026-01-01 5 rows"),
        ({"end": "2024-03-01T00:00:00Z"}, "2026-01-01 none 5 rows"),
    ],
)
def test_the_list_of_runs_says_what_has_changed_and_over_which_windows(
    capsys, monkeypatch, changes, end_of_line
):
    monkeypatch.setenv("COLUMNS", "200")
    line = {
        "run_id": "a-1",
        "kind": "advance",
        "status": "published",
        "ended": "2026-01-01",
        "start": "2024-03-01T00:00:00Z",
        "end": "2024-03-02T00:00:00Z",
        "diff": {"windows": {"insert": 3, "update": 2, "delete": 0}},
        "diff_published": True,
        "reverted_by": None,
    }
    show.runs([line | changes])
    assert " ".join(capsys.readouterr().out.split()).endswith(end_of_line)
