"""A command reads each step of the ledger once, however many of its parts ask. No engine."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from ledger_reads import steps_read
from many_days import a_lake_of
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE

from strandline.cli.main import main
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger

COMMANDS = (
    *("status meter", "status meter --deep", "runs list meter", "runs show meter r-1"),
    *("read meter windows", "report meter", "maintain meter --dry-run"),
    *("runs drop meter r-2 --reason x", "runs cancel meter r-3", "runs cancel meter r-3"),
    "changes meter",
    "erase meter --reason x --where reason='late'",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A lake of two days, three runs of which have not published, and the pipeline's file."""
    folder = tmp_path_factory.mktemp("home")
    lake = a_lake_of(2, SPEC, folder / "lake")
    ledger = Ledger(lake.pipeline("meter"))
    for run_id in ("r-2", "r-3", "r-4"):
        for step in ("started", "observed", "rejected"):
            ledger.append(Entry(run_id, 1, step, "backfill"), datetime.now(UTC))
    (folder / "meter.yaml").write_text(FILE, encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reads_each_step_of_the_ledger_once(home, command):
    with steps_read() as read, pytest.raises(SystemExit) as ended:
        main(["--pipelines", str(home), "--lake", str(home / "lake"), *command.split()])
    assert not ended.value.code
    assert len(read) >= 10
    assert len(read) == len({*read})
