"""A pipeline's tables say in which format they are; an older program does not touch them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from deltalake import DeltaTable
from many_days import a_lake_of
from meter import a_meter

from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry, row_of
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.format import FORMAT
from strandline.lake.store.lake import Lake
from strandline.pipeline.publish.abandon import drop_run
from strandline.pipeline.views.report import write_report
from strandline.pipeline.views.status import status_of

SPEC = a_meter({"tumbling": "12h"})
NOW = datetime(2024, 3, 1, tzinfo=UTC)
STEP = Entry("r-1", 1, "started", "advance")


@pytest.fixture
def store(tmp_path):
    return Lake.at(str(tmp_path)).pipeline("meter")


def properties(store):
    return DeltaTable(store.uri("runs")).metadata().configuration


def set_properties(store, **values):
    named = {f"strandline.{name}": value for name, value in values.items()}
    table = DeltaTable(store.uri("runs"))
    table.alter.set_table_properties(named, raise_if_not_exists=False)


def test_the_first_step_says_the_format(store):
    Ledger(store).append(STEP, NOW)
    assert properties(store)["strandline.format"] == str(FORMAT)
    version = store.version("runs")
    Ledger(store).append(STEP, NOW)
    assert store.version("runs") == version + 1


def test_tables_that_name_no_format_are_read_and_named_with_the_next_step(store):
    store.append("runs", row_of(STEP, 1, NOW))
    ledger = Ledger(store)
    assert [entry.run_id for entry in ledger.entries()] == ["r-1"]
    assert "strandline.format" not in properties(store)
    ledger.append(STEP, NOW)
    assert properties(store)["strandline.format"] == str(FORMAT)
    assert [entry.position for entry in ledger.entries()] == [1, 2]


@pytest.mark.parametrize("format_there", [str(FORMAT + 1), "x"])
def test_tables_of_a_newer_program_are_refused_by_everybody(tmp_path, format_there):
    lake = a_lake_of(2, SPEC, tmp_path)
    store = lake.pipeline("meter")
    set_properties(store, format=format_there, writtenBy="9.1.0")
    versions = store.versions()
    told = f"format {format_there}, written by Strandline 9.1.0.*install Strandline 9.1.0"
    for call in (
        lambda: status_of(SPEC, lake),
        lambda: write_report(SPEC, lake, tmp_path),
        lambda: drop_run(SPEC, lake, "r-1", reason="no more"),
        lambda: Ledger(store).append(STEP, NOW),
    ):
        with pytest.raises(InputError, match=told):
            call()
    assert store.versions() == versions


def test_a_program_that_has_the_ledger_open_sees_that_a_newer_one_has_come(store):
    ledger = Ledger(store)
    ledger.append(STEP, NOW)
    set_properties(store, format=str(FORMAT + 1))
    with pytest.raises(InputError, match="written by Strandline"):
        ledger.append(STEP, NOW)
    assert store.rows("runs") == 1
