"""The page of a run: what it says of slots, which a published one may know in part only."""

from __future__ import annotations

import pytest

from strandline.cli import show
from strandline.pipeline.request.request import Outcome


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
