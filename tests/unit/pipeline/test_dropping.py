"""`runs drop` over tables written by hand: what goes back, what is refused. No JVM."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from killed import Killed
from meter import a_meter

from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store
from strandline.model.intervals import DAY_MS, TimeRange
from strandline.pipeline.publish.abandon import cancel_run, drop_run

SPEC = a_meter({"tumbling": "1h"})
TABLES = ("quarantine", "windows")


class Published:
    """Two tables that a first run has published, and a second one has begun to."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake.at(str(folder))
        self.store = self.lake.pipeline(SPEC.pipeline)
        self.ledger = Ledger(self.store)
        for name in TABLES:
            self.write(name, [1, 2], "first")
        self.note("first", "started", "publishing", "published")
        self.before = self.rows()
        self.write("quarantine", [8], "second/observed")
        self.before["quarantine"].append({"n": 8})

    def note(self, run_id: str, *steps: str, **more: object) -> None:
        for step in steps:
            within = TimeRange(0, DAY_MS)
            entry = Entry(run_id, 1, step, "backfill", within, horizon_ms=DAY_MS, **more)
            if step == "publishing":
                entry = replace(entry, publish=ToPublish(parts=tuple(TABLES)))
            self.ledger.append(entry, datetime.now(UTC))

    def write(self, name: str, values: list[int], run_id: str, **more: object) -> None:
        rows = pa.table({"n": pa.array(values, pa.int64())} | more)
        properties = CommitProperties({"userMetadata": run_id})
        uri = self.store.uri(name)
        write_deltalake(uri, rows, mode="append", schema_mode="merge", commit_properties=properties)

    def die_in_publishing(self, **step: object) -> None:
        """Begin to publish: rows come, rows go, a column comes; and then nothing more."""
        versions = {name: self.store.version(name) for name in TABLES}
        self.note("second", "publishing", **({"versions": versions} | step))
        self.write("quarantine", [3], "second")
        self.write("windows", [4], "second", more=pa.array(["new"]))
        DeltaTable(self.store.uri("windows")).delete("n = 1")
        (Path(self.store.staging("second")) / "windows").mkdir(parents=True)

    def rows(self) -> dict[str, list[dict[str, object]]]:
        found = {}
        for name in TABLES:
            rows = DeltaTable(self.store.uri(name)).to_pyarrow_table().to_pylist()
            found[name] = sorted(rows, key=lambda row: row["n"])
        return found

    def drop(self, run_id: str = "second", **more: str) -> dict[str, object]:
        return drop_run(SPEC, self.lake, run_id, **({"reason": "its staging is gone"} | more))

    def steps(self, run_id: str = "second") -> list[str]:
        return [entry.step for entry in self.ledger.entries() if entry.run_id == run_id]

    def assert_as_before(self) -> None:
        assert self.rows() == self.before
        assert self.ledger.state().unfinished is None
        assert not Path(self.store.staging("second")).exists()
        assert self.steps()[-1] == "dropped"
        assert self.steps().count("dropped") == 1


@pytest.fixture
def published(tmp_path):
    return Published(tmp_path)


def test_the_tables_go_back_to_the_versions_from_before_the_publish(published):
    published.die_in_publishing()
    assert published.rows() != published.before
    told = published.drop(requested_by="ann")
    published.assert_as_before()
    assert told["versions"] == {"quarantine": 1, "windows": 0}
    last = published.ledger.entries()[-1]
    assert (last.reason, last.requested_by) == ("its staging is gone", "ann")
    assert last.versions == told["versions"]
    assert DeltaTable(published.store.uri("windows")).schema().fields[-1].name == "n"
    restored = DeltaTable(published.store.uri("windows")).history(1)[0]
    assert (restored["operation"], restored["userMetadata"]) == ("RESTORE", "second/dropped")


def test_dropping_a_run_twice_is_dropping_it_once(published):
    published.die_in_publishing()
    first = published.drop()
    versions = published.store.versions()
    assert published.drop(reason="typed again") == first
    assert published.store.versions() == versions
    published.assert_as_before()


@pytest.mark.parametrize("moment", range(10))
def test_a_drop_that_is_killed_anywhere_is_ended_by_typing_it_again(published, monkeypatch, moment):
    published.die_in_publishing()
    calls = count()

    def dying(real):
        def call(*arguments):
            if next(calls) == moment:
                raise Killed
            done = real(*arguments)
            if next(calls) == moment:
                raise Killed
            return done

        return call

    for place, name in ((Store, "restore"), (Store, "drop_staging"), (Ledger, "append")):
        monkeypatch.setattr(place, name, dying(getattr(place, name)))
    with pytest.raises(Killed):
        published.drop()
    monkeypatch.undo()
    published.drop()
    published.assert_as_before()


def test_a_drop_that_was_killed_is_said_to_take_the_publish_back(published, monkeypatch):
    published.die_in_publishing()

    def dies(*_):
        raise Killed

    monkeypatch.setattr(Store, "restore", dies)
    with pytest.raises(Killed):
        published.drop()
    assert "the next one takes the publish back" in published.ledger.state().unfinished.notice
    with pytest.raises(InputError, match=r"is being dropped.*takes the publish back"):
        cancel_run(SPEC, published.lake, "second", reason="a mistake")


@pytest.mark.parametrize("steps", [("started",), ("started", "rejected"), ("started", "failed")])
def test_of_a_run_that_has_not_begun_to_publish_only_the_staging_goes(published, steps):
    published.note("second", *steps)
    (Path(published.store.staging("second")) / "windows").mkdir(parents=True)
    tables = {name: published.store.version(name) for name in TABLES}
    for _ in range(2):
        assert published.drop()["versions"] == {}
        published.assert_as_before()
    assert {name: published.store.version(name) for name in TABLES} == tables


def test_a_publish_of_another_run_is_not_touched_by_a_drop(published):
    published.note("third", "started", "rejected")
    published.die_in_publishing()
    standing = published.rows()
    published.drop("third")
    assert published.rows() == standing
    assert published.ledger.state().unfinished.run_id == "second"


def test_a_published_run_is_not_dropped_but_rebuilt(published):
    with pytest.raises(InputError, match=r"has published.*strandline backfill meter --start 1970"):
        published.drop("first")
    assert published.steps("first") == ["started", "publishing", "published"]


@pytest.mark.parametrize(
    ("kind", "step", "said"),
    [
        ("acknowledge", "acknowledged", "a run of acknowledge cannot be dropped or cancelled"),
        ("erase", "erased", "a run of erase cannot be dropped or cancelled"),
        ("maintain", "maintained", "a run of maintain cannot be dropped or cancelled"),
        ("advance", "repeated", "ended as repeated; it has changed nothing to take back"),
        (
            "advance",
            "already_processed",
            "ended as already_processed; it has changed nothing to take back",
        ),
    ],
)
@pytest.mark.parametrize("take_back", [drop_run, cancel_run])
def test_what_has_nothing_to_take_back_is_neither_dropped_nor_cancelled(
    published, take_back, kind, step, said
):
    published.ledger.append(Entry("x-1", 1, step, kind), datetime.now(UTC))
    with pytest.raises(InputError) as refused:
        take_back(SPEC, published.lake, "x-1", reason="a mistake")
    assert re.sub(r"[:;,] ", "; ", str(refused.value)).endswith(said)
    assert published.steps("x-1") == [step]


def test_a_run_that_is_not_there_is_not_dropped(published):
    with pytest.raises(InputError, match=r"no such run.*strandline runs list meter"):
        published.drop("thrid")


def test_a_version_whose_files_are_gone_is_said_with_the_table(published):
    published.die_in_publishing()
    for file in DeltaTable(published.store.uri("windows"), version=0).file_uris():
        Path(file).unlink()
    with pytest.raises(InputError, match=r"meter: windows: cannot go back.*from a copy"):
        published.drop()
    assert published.steps()[-1] == "dropping"
