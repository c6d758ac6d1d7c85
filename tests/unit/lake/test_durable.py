"""What a step of the ledger names is stored before the step, and a step before what it allows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from strandline.lake.ledger import ledger
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store import durable
from strandline.lake.store.lake import Lake


def test_a_folder_is_stored_and_one_that_is_not_there_is_none(tmp_path):
    (tmp_path / "file").write_text("rows")
    durable.flush(tmp_path)
    durable.flush(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("step", "stored_at"),
    [
        ("started", []),
        ("observed", [0]),
        ("publishing", [0, 1]),
        ("published", [0, 1]),
        ("erased", [0, 1]),
    ],
)
def test_a_lake_is_stored_before_a_step_that_names_its_tables_and_after_one_that_changes_them(
    tmp_path, monkeypatch, step, stored_at
):
    steps, found = Ledger(Lake.at(str(tmp_path)).pipeline("meter")), []
    monkeypatch.setattr(ledger, "flush", lambda folder: found.append(len(steps.entries())))
    steps.append(Entry("r-1", 1, step, "advance"), datetime.now(UTC))
    assert found == stored_at
