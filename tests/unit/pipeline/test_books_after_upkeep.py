"""Which missing rows `status --deep` names once upkeep has been at work. No JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from many_days import a_lake_of
from meter import HALF_DAYS as SPEC

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.pipeline.views.deep import books_of_all
from strandline.pipeline.views.read_pipeline import ReadPipeline

REMOVED = {"quarantine": {"insert": 0, "update": 0, "delete": 2}}
UPKEEP = Entry("m-1", 1, "maintained", "maintain")
BOTH, WINDOWS_ALONE = {"late", "accepted"}, {"accepted"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which late rows of a day, and windows of another one, are missing."""
    lake = a_lake_of(4, SPEC, tmp_path / "lake")
    store = lake.pipeline("meter")
    DeltaTable(store.uri("quarantine")).delete("quarantine_date = '2013-01-01'")
    DeltaTable(store.uri("windows")).delete("window_date = '2013-01-02'")
    return lake


@pytest.mark.parametrize(
    ("steps", "quarantine_days", "named"),
    [
        ([], None, BOTH),
        ([UPKEEP], None, BOTH),
        ([replace(UPKEEP, diff=REMOVED)], None, WINDOWS_ALONE),
        ([replace(UPKEEP, diff=REMOVED), replace(UPKEEP, run_id="m-2")], None, WINDOWS_ALONE),
        ([UPKEEP], 30, WINDOWS_ALONE),  # of an earlier version, which wrote no diff
        ([], 30, BOTH),
        ([Entry("e-1", 1, "erased", "erase")], None, WINDOWS_ALONE),
        ([Entry("k-1", 1, "acknowledged", "acknowledge")], None, BOTH),
    ],
)
def test_only_rows_of_quarantine_may_be_missing_and_only_if_upkeep_has_removed_some(
    lake: Lake, steps: list[Entry], quarantine_days: int | None, named: set[str]
) -> None:
    store = lake.pipeline("meter")
    known = Ledger(store).entries()
    numbered = [replace(step, position=len(known) + n) for n, step in enumerate(steps, 1)]
    spec = SPEC.model_copy(update={"quarantine_days": quarantine_days})
    books = books_of_all(ReadPipeline(spec, store, PipelineState.of([*known, *numbered])))
    assert {book.name.split()[0] for book in books if not book.balanced} == named
