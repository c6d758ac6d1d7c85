"""A landing table is there, is not there yet, or cannot be read: three different outcomes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline.errors import InputError, RetryableError
from strandline.lake.landing import open_table as opening
from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.open_table import NoTableError
from strandline.lake.ledger.entry import Entry
from strandline.model.intervals import LEAST_INSTANT_MS

PLACE = "clicks: source.table"


def opened(folder):
    return LandingLog.open(str(folder), PLACE, "landing/clicks")


@pytest.fixture
def table(tmp_path):
    """A table of three commits."""
    for number in range(3):
        write_deltalake(str(tmp_path / "t"), pa.table({"a": [number]}), mode="append")
    return tmp_path / "t"


def commit_of(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020}.json"


def test_a_table_that_is_not_there_yet_is_an_outcome_of_its_own(tmp_path):
    (tmp_path / "empty").mkdir()
    for place in ("none", "empty"):
        with pytest.raises(NoTableError, match="no Delta table at landing/clicks") as found:
            opened(tmp_path / place)
        assert (found.value.place, found.value.exit_code) == (PLACE, 2)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda table: commit_of(table, 1).write_text('{"add":{"pa'), "log is damaged"),
        (lambda table: commit_of(table, 1).unlink(), "log is damaged"),
        (lambda table: commit_of(table, 0).unlink(), "log is damaged"),
        (
            lambda table: commit_of(table, 0).write_text(
                commit_of(table, 0).read_text().replace('ReaderVersion":1', 'ReaderVersion":9')
            ),
            "cannot be read .*minimum reader version 9",
        ),
    ],
    ids=["cut", "gap", "no first commit", "a later protocol"],
)
def test_a_table_that_is_there_and_cannot_be_read_says_why(table, damage, reason):
    assert opened(table).version == 2
    damage(table)
    with pytest.raises(InputError, match=reason) as found:
        opened(table)
    assert not isinstance(found.value, NoTableError)
    assert found.value.place == f"{PLACE} landing/clicks"
    assert "no Delta table" not in str(found.value)


@pytest.mark.parametrize(
    ("said", "kind", "reason"),
    [
        ("Generic S3 error: Error performing GET http://x", RetryableError, "does not answer"),
        ("Permission denied (os error 13)", InputError, "cannot be read .Permission denied"),
    ],
)
def test_a_store_that_does_not_answer_or_let_read_has_its_own_exit_code(
    monkeypatch, said, kind, reason
):
    def refuses(*_, **__):
        raise OSError(said)

    monkeypatch.setattr(opening, "DeltaTable", refuses)
    with pytest.raises(kind, match=reason) as found:
        opened("s3://bucket/t")
    assert not isinstance(found.value, NoTableError)


def test_a_run_that_has_read_nothing_before_the_first_instant_has_read_what_is_there(table):
    read = Entry("r-1", 1, "published", "advance", landing_version=2)
    log = opened(table)
    assert log.has_rows_read_by(read, None, LEAST_INSTANT_MS)
    assert log.days_with_other_files(read, "a", LEAST_INSTANT_MS) == []
