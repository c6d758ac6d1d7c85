"""What `runs revert` refuses by the ledger alone, and what it makes the pipeline remember."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from lakes import a_spec, instant
from no_session import spark_of

from strandline.errors import InputError
from strandline.lake.ledger import Entry
from strandline.lake.steps import frontier_after
from strandline.model.intervals import TimeRange
from strandline.pipeline.revert import require_revertible

SPEC = a_spec()
REBUILD = r"strandline backfill meter --start 2024-03-02T00:00:00Z --end 2024-03-03T00:00:00Z"


def published(run_id: str, start: str, end: str, position: int, **more: object) -> list[Entry]:
    within = TimeRange(instant(start), instant(end))
    known = {"horizon_ms": instant(end), "frontier_ms": instant(end), "versions": {"windows": 1}}
    begun = Entry(run_id, 1, "publishing", "advance", within, position=position, **(known | more))
    return [
        replace(begun, publish={"key": ["device"], "whole": [], "parts": ["windows"]}),
        replace(begun, step="published", position=position + 1),
    ]


NIGHTS = [*published("first", "1", "2", 1), *published("second", "2", "3", 3)]


def test_the_last_run_of_a_range_is_taken_back_with_what_stood_before_it():
    nights = [*NIGHTS, *published("elsewhere", "3", "4", 5)]
    nights[3] = replace(nights[3], settled=[date(2024, 3, 2)], closed=True)
    reverted = require_revertible("meter", nights, "second")
    first = reverted.first_step(spark_of(), SPEC, "a mistake", "ann")
    assert (first.kind, first.range) == ("revert", nights[3].range)
    assert first.frontier_ms == instant("2")
    assert frontier_after(nights, first, None) == instant("2")
    assert first.reopened  # what it had closed is open again
    assert reverted.days_owed == [date(2024, 3, 2)]


def test_the_first_run_of_all_leaves_no_frontier():
    reverted = require_revertible("meter", NIGHTS[:2], "first")
    first = reverted.first_step(spark_of(), SPEC, "a mistake", None)
    assert frontier_after(NIGHTS[:2], first, None) is None


def test_a_run_under_later_ones_is_refused_with_their_names():
    later = [*published("third", "2 12:00", "3", 5), *published("fourth", "2", "3", 7)]
    with pytest.raises(InputError, match=rf"third, fourth has since; revert the last.*{REBUILD}"):
        require_revertible("meter", [*NIGHTS, *later], "second")


def test_a_run_that_has_replaced_all_is_refused_with_where_the_old_rows_are_read():
    anew = published("anew", "1", "4", 5, recreated=True)
    with pytest.raises(InputError, match=r"--recreate\).*--as-of-ledger 4;.*--recreate --reason"):
        require_revertible("meter", [*NIGHTS, *anew], "anew")


def test_a_run_whose_ledger_names_no_versions_is_refused():
    with pytest.raises(InputError, match=rf"too old to say.*{REBUILD}"):
        require_revertible("meter", published("old", "2", "3", 1, versions=None), "old")


def test_a_run_that_has_accepted_a_loss_is_refused():
    with pytest.raises(InputError, match=rf"accepted a loss.*{REBUILD}"):
        require_revertible("meter", published("loss", "2", "3", 1, accepted_loss="gone"), "loss")


def test_a_run_that_has_reopened_what_was_closed_is_refused():
    closed = published("closing", "2", "3", 1, closed=True)
    reopened = published("reopening", "2", "3", 3, reopened=True)
    with pytest.raises(InputError, match=rf"--close had closed before; .*{REBUILD} --close"):
        require_revertible("meter", [*closed, *reopened], "reopening")


def test_a_run_that_has_not_published_is_cancelled_not_reverted():
    with pytest.raises(InputError, match=r"has not published.*strandline runs cancel meter first"):
        require_revertible("meter", NIGHTS[:1], "first")


def test_a_run_that_is_not_there_is_not_reverted():
    with pytest.raises(InputError, match=r"no such run.*strandline runs list meter"):
        require_revertible("meter", NIGHTS, "thrid")
