"""A run whose landing table was opened before others wrote does not go by it. No Spark."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from deltalake import write_deltalake
from lakes import FIRST_DAY, a_record, a_spec, instant, land
from no_session import spark_of

from strandline.engine.timeline import Observed, empty_cells
from strandline.errors import InputError, RetryableError
from strandline.lake.landing.open_landing import open_landing
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.store.lake import Lake
from strandline.lake.store.schema import arrow_schema
from strandline.lake.timeline.commit import DaysToWrite, commit_days
from strandline.pipeline.manage.revert import revert_run
from strandline.pipeline.plan.planned_run import planned_run_of
from strandline.pipeline.publish.publish import finish_dead_publish
from strandline.pipeline.request.context import Context
from strandline.pipeline.request.opened import (
    OpenedLog,
    RowsErasedError,
    brought_up_to_date,
    require_nothing_erased,
    staging_cleared,
)
from strandline.pipeline.request.request import Request
from strandline.tables import QUARANTINE, windows_table

SPEC = a_spec()
DAYS = [FIRST_DAY.replace(day=day) for day in (1, 2)]


@pytest.fixture
def ctx(tmp_path) -> Context:
    """A run that has opened its landing table at its first version."""
    lake = Lake.at(str(tmp_path))
    land(tmp_path, [a_record(f"{day.day} 10:00", f"{day.day} 09:00") for day in DAYS])
    ledger = Ledger(lake.pipeline("meter"))
    note(ledger, "r-1", "published")
    return Context(None, SPEC, lake, open_landing(None, lake, SPEC), ledger, "r-2", dry_run=False)


def note(ledger: Ledger, run_id: str, step: str) -> int:
    kind = "erase" if step == "erased" else "advance"
    return ledger.append(Entry(run_id, 1, step, kind), datetime.now(UTC))


def land_more(ctx: Context) -> None:
    land(ctx.lake.folder, [a_record("2 11:00", "2 09:00")], mode="append")


def observe_as_it_is(ctx: Context) -> None:
    """What another run does that finds the landing table as it is now."""
    landing = open_landing(None, ctx.lake, SPEC)
    facts = {day: landing.facts[day] for day in DAYS}
    days = DaysToWrite(SPEC, {}, Observed(empty_cells()), [], DAYS, facts)
    commit_days(ctx.store, days, replace=True)


@pytest.mark.parametrize("step", ["published", "observed", "erased"])
def test_the_landing_table_is_opened_again_once_somebody_has_written_a_step(ctx, step):
    opened = OpenedLog.newest(ctx.lake, SPEC)
    assert (opened.base, opened.log.version) == (1, 0)
    land_more(ctx)
    note(ctx.ledger, ctx.run_id, "started")  # its own step
    same, state = brought_up_to_date(ctx, opened.base, [ctx.run_id])
    assert (same.landing.version, state.position) == (0, 2)
    since = note(ctx.ledger, "another", step)
    again, state = brought_up_to_date(ctx, opened.base, [ctx.run_id])
    assert (again.landing.version, state.position) == (1, since)


def test_a_dead_publish_that_lists_no_tables_says_so_and_how_to_drop_it(ctx):
    note(ctx.ledger, "night", "publishing")
    with pytest.raises(InputError) as refused:
        finish_dead_publish(ctx)
    assert "its step of the ledger lists no staged tables" in refused.value.problem
    assert "strandline runs drop meter night --reason TEXT" in refused.value.way_out


def test_rows_that_are_erased_since_end_a_run_and_nothing_of_it_stays(ctx):
    staged = ctx.lake.folder / "meter" / "_staging" / "r-2" / "malformed"
    staged.mkdir(parents=True)
    require_nothing_erased(ctx, 1)
    note(ctx.ledger, "erase-2", "erased")
    with (
        pytest.raises(RowsErasedError, match=r"r-2: erase-2 has erased rows.*run it again") as it,
        staging_cleared(ctx),
    ):
        require_nothing_erased(ctx, 1)
    assert it.value.exit_code == 4
    assert not staged.parent.exists()
    require_nothing_erased(ctx, 2)  # a run that has begun after it


def test_rows_that_are_erased_since_end_a_revert_and_nothing_of_it_stays(ctx):
    for table in (QUARANTINE, windows_table(["device"])):
        empty = arrow_schema({"device": "string", **table.columns}).empty_table()
        write_deltalake(ctx.store.uri(table.name), empty, partition_by=[table.partition])
    of_tables = {"versions": ctx.store.versions(), "publish": ToPublish(key=("device",))}
    for step in ("publishing", "published"):
        ctx.ledger.append(Entry("night", 1, step, "advance", **of_tables), datetime.now(UTC))
    staged = []

    def erased_before_it_publishes(step: str) -> None:
        if step == "publish":
            run_id = ctx.ledger.state().steps[-1].run_id
            staged.append(ctx.lake.folder / "meter" / "_staging" / run_id)
            assert (staged[0] / "windows_diff").exists()
            note(ctx.ledger, "erase-2", "erased")

    with pytest.raises(RowsErasedError, match="erase-2 has erased rows"):
        revert_run(
            SPEC,
            ctx.lake,
            "night",
            spark_of(),
            reason="a mistake",
            progress=erased_before_it_publishes,
        )
    assert [folder.exists() for folder in staged] == [False]


def test_rows_that_another_run_has_observed_since_do_not_seem_to_have_gone(ctx):
    land_more(ctx)
    observe_as_it_is(ctx)
    with pytest.raises(RetryableError, match="newer rows of 2024-03-01 to 2024-03-02 since"):
        planned_run_of(ctx, Request("advance", to_ms=instant("3")), ctx.ledger.state())


def test_a_landing_table_that_was_brought_back_from_a_copy_is_read_as_it_is(ctx):
    """Its version is an older one, and it is the newest that there is."""
    folder = ctx.lake.folder / "landing"
    shutil.copytree(folder, ctx.lake.folder / "copy")
    land_more(ctx)
    observe_as_it_is(ctx)
    shutil.rmtree(folder)
    (ctx.lake.folder / "copy").rename(folder)
    assert open_landing(None, ctx.lake, SPEC).log.is_newest
    with pytest.raises(KeyError):  # it goes on, to ask the engine that is not there
        planned_run_of(ctx, Request("advance", to_ms=instant("3")), ctx.ledger.state())


def test_a_dry_run_has_one_staging_and_nothing_of_it_stays(ctx, tmp_path, monkeypatch):
    """Whoever asks for it stages beside what others have staged."""
    passing = tmp_path / "tmp"
    passing.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(passing))
    dry = replace(ctx, spark=spark_of(), dry_run=True)
    assert dry.staging.uri("windows") == dry.staging.uri("windows")
    assert len([*passing.iterdir()]) == 1
    dry.staging.drop()
    assert [*passing.iterdir()] == []
