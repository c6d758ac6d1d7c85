"""What happens while the engine of a run starts, or the run observes: it goes by what is there."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from lakes import Line, a_record, a_spec, instant, land

from strandline.errors import RetryableError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.pipeline.manage.erase import erase
from strandline.pipeline.rebuild.rebuild import Staged, rebuild_into_staging
from strandline.pipeline.request.opened import OpenedLog
from strandline.pipeline.request.request import Request
from strandline.pipeline.run import run

if TYPE_CHECKING:
    from strandline.pipeline.request.context import Context

pytestmark = pytest.mark.spark

SPEC = a_spec(source__channel=..., source__channels=...)
TO_3 = Request("advance", to_ms=instant("3"))


@pytest.fixture(scope="module")
def first_night(spark, tmp_path_factory):
    """A first night is published; on the second day malformed rows of two persons have landed."""
    line = Line(spark, tmp_path_factory.mktemp("first"), SPEC)
    good = [a_record(f"{day} 10:00", f"{day} 09:00") for day in (1, 2)]
    wrong = {"happened_at": None}
    of_zoe = [a_record(f"2 1{hour}:00", "2 09:00", device="zoe", **wrong) for hour in (1, 2)]
    land(line.folder, [*good, *of_zoe, a_record("2 13:00", "2 09:00", device="bob", **wrong)])
    line.advance("2")
    return line


def devices(line: Line) -> set[str]:
    return {row["device"] for row in line.rows("quarantine")}


def test_a_rebuild_reads_tables_as_they_were_before_its_run_brought_anything_into_them(
    first_night, tmp_path, monkeypatch
):
    line = first_night.copy(tmp_path)

    def later(ctx: Context, *of_run: Any) -> Staged:
        """Rebuilds once the malformed rows are in quarantine."""
        before, until = ctx.store.version("quarantine"), monotonic() + 300
        while ctx.store.newest("quarantine").version() == before:
            assert monotonic() < until
            sleep(0.05)
        assert ctx.store.version("quarantine") == before
        return rebuild_into_staging(ctx, *of_run)

    monkeypatch.setattr("strandline.pipeline.run.rebuild_into_staging", later)
    assert line.advance("3").changed
    assert devices(line) == {"zoe", "bob"}


def test_rows_that_are_erased_while_the_engine_starts_do_not_come_back(first_night, tmp_path):
    line = first_night.copy(tmp_path)
    opened = OpenedLog.newest(line.lake, line.spec)
    DeltaTable(str(tmp_path / "landing/meter")).delete("device = 'zoe'")
    erase(line.spec, line.lake, "device = 'zoe'", reason="asked for")
    with line._audit():
        run(line.spec, line.lake, TO_3, line.spark, opened=opened)
    assert devices(line) == {"bob"}


def test_rows_that_are_erased_while_a_run_observes_are_not_written(first_night, tmp_path):
    """It ends with 4 and keeps nothing of what it has staged; the next try reads what is left."""
    line = first_night.copy(tmp_path)
    before = line.versions()

    def erasing(step: str) -> None:
        if step == "rebuild":
            DeltaTable(str(tmp_path / "landing/meter")).delete("device = 'zoe'")
            erased = Entry("erase-1", 1, "erased", "erase", versions=line.versions())
            Ledger(line.lake.pipeline("meter")).append(erased, datetime.now(UTC))

    with pytest.raises(RetryableError, match="erase-1 has erased rows that it may have read"):
        line.run(TO_3, erasing)
    assert line.versions() == before
    assert [*(line.root / "_staging").iterdir()] == []
    line.advance("3")
    assert devices(line) == {"bob"}


def test_rows_that_another_driver_publishes_while_the_engine_starts_are_not_lost(
    first_night, tmp_path
):
    line = first_night.copy(tmp_path)
    opened = OpenedLog.newest(line.lake, line.spec)
    land(tmp_path, [a_record("1 11:00", "1 09:30", amount=5)], mode="append")
    line.advance("2")
    with line._audit():
        outcome = run(line.spec, line.lake, TO_3, line.spark, opened=opened)
    assert (outcome.missing, outcome.frontier_ms) == ([], instant("3"))
    assert sorted(row["total"] for row in line.rows("windows")) == [1, 5]
