"""A run reads each step of the ledger once, from the command to what it has published."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from lakes import SPEC, Line, a_spec, a_week, books_alone, land
from ledger_reads import steps_read

from strandline.cli import running, runs
from strandline.cli.main import main
from strandline.quality.audit import run as audit

pytestmark = pytest.mark.spark

ADVANCE = "advance meter --to 2024-03-03"
BY_HAND = "backfill meter --start 2024-03-01 --end 2024-03-02"


@pytest.fixture
def command(spark, tmp_path, monkeypatch):
    """`strandline …` in the tests' own session: the positions of the steps that it has read."""
    land(tmp_path, a_week(days=3))
    (tmp_path / "meter.yaml").write_text(json.dumps(SPEC), encoding="utf-8")

    @contextmanager
    def in_this_session(*_: object, **__: object):
        yield spark, lambda step: None

    monkeypatch.setattr(running, "application", in_this_session)
    monkeypatch.setattr(runs, "application", in_this_session)
    monkeypatch.setattr(audit, "audit", books_alone)

    def call(typed: str) -> list[int]:
        with steps_read() as read, pytest.raises(SystemExit) as ended:
            main(["--pipelines", str(tmp_path), "--lake", str(tmp_path), *typed.split()])
        assert not ended.value.code
        return read

    return call


def test_a_run_reads_each_step_once_whatever_comes_of_it(command, spark, tmp_path):
    line = Line(spark, tmp_path, a_spec())
    for typed in (
        ADVANCE,
        ADVANCE,  # is repeated
        "advance meter --to 2024-03-02",  # is processed already
        f"{BY_HAND} --dry-run",
        f"{BY_HAND} --force",
        "backfill meter --start 2024-03-02 --end 2024-03-03 --prepare",
        "runs publish meter {last}",
        "runs revert meter {last} --reason x",
    ):
        last = line.ledger[-1].run_id if line.ledger else ""
        read = command(typed.format(last=last))
        assert len(read) == len({*read}), typed
        assert len(read) in {len(line.ledger), len(line.ledger) - 1}, typed
    assert [entry.step for entry in line.ledger].count("published") == 4
