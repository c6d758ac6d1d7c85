"""A power cut takes what was not stored: the run names the file; what the guide says heals it."""

from __future__ import annotations

from pathlib import Path

import pytest
from changes import of_days
from lakes import Line, a_spec, a_week, land
from pyarrow import ArrowInvalid

from strandline.errors import InputError, storage_error
from strandline.pipeline.publish.abandon import drop_run

pytestmark = pytest.mark.spark

DAYS = a_week(days=3)
TABLES = ("windows", "quarantine", "completeness", "timeline", "runs")


@pytest.fixture(scope="module")
def published(spark, tmp_path_factory):
    """Two days, published one after the other."""
    line = Line(spark, tmp_path_factory.mktemp("published"), a_spec())
    land(line.folder, of_days(DAYS, 1, 2))
    line.advance("2")
    line.advance("3")
    return line


def newest(line: Line, table: str, pattern: str) -> Path:
    """The last of a table's commits, or files, by the time at which it was written."""
    return max((line.root / table).rglob(pattern), key=lambda file: file.stat().st_mtime_ns)


def run_again(line: Line) -> None:
    """As the guide says; what has begun to publish, and cannot be finished, is dropped first."""
    last = line.ledger[-1]
    if last.step == "publishing":
        drop_run(line.spec, line.lake, last.run_id, reason="a power cut", requested_by=None)
    line.advance("3")


def test_where_a_commit_was_not_stored_the_next_run_leaves_what_it_should(published, tmp_path):
    """The last one of a publish; without a run in between that was told of a missing file."""
    line = published.copy(tmp_path)
    newest(line, "windows", "*.json").unlink()
    run_again(line)
    assert line.published() == published.published()


@pytest.mark.parametrize("table", TABLES)
def test_where_a_commit_names_rows_that_were_not_stored_their_file_is_named_and_going_back_heals(
    published, tmp_path, table
):
    line = published.copy(tmp_path)
    file = newest(line, table, "*.parquet")
    file.write_bytes(b"")
    with pytest.raises((InputError, ArrowInvalid)) as caught:
        line.advance("3")
    said = storage_error("strandline advance meter", caught.value)  # as the command says it
    if isinstance(caught.value, InputError):
        said = caught.value
    assert isinstance(said, InputError)
    assert file.name in str(said)
    assert "'A power cut' in the guide" in str(said)
    newest(line, table, "*.json").unlink()
    run_again(line)
    assert line.published() == published.published()
