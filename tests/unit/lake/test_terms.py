"""The lock of an object store: whatever dies, sleeps or races, no earlier term commits later."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import psutil
import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError
from obstore.store import MemoryStore
from schedules import Schedule

from strandline.errors import InputError, RetryableError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store import lock, object_store, terms
from strandline.lake.store.lake import Lake
from strandline.lake.store.lock import commit, term_of
from strandline.lake.store.object_store import StoreObjects, race, require_created_once
from strandline.lake.store.store import storage_errors
from strandline.lake.store.terms import LASTS_S, Owner, Terms

SCHEDULES = int(os.environ.get("SCHEDULES", "200"))


@pytest.fixture
def objects():
    return StoreObjects(MemoryStore())


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def lock_of(objects, clock):
    def made(host="a host", **more):
        return Terms(objects, Owner(host, 1, 0.0), now_s=lambda: clock[0], **more)

    return made


@pytest.mark.parametrize("seed", range(0, SCHEDULES, 20))
def test_however_processes_race_sleep_and_die_no_earlier_term_commits_later(seed):
    published = 0
    for number in range(seed, seed + 20):
        done = Schedule(number).run()
        assert done.late_commits() == []
        assert len(set(done.published)) == len(done.published)
        published += len(done.published)
    assert published > 20


@pytest.mark.parametrize("without", ["asks", "fences"])
def test_who_did_not_ask_or_fence_would_be_found_by_these_schedules(without):
    drawn = (Schedule(number, **{without: False}).run() for number in range(500))
    assert any(done.late_commits() for done in drawn)


def test_a_term_is_held_until_it_is_ended(lock_of):
    first = lock_of().take()
    assert (first.number, first.follows_cleanly) == (1, True)
    assert lock_of().take() is None
    lock_of().end(first, cleanly=True)
    second = lock_of().take()
    assert (second.number, second.follows_cleanly) == (2, True)
    assert not lock_of().is_held(first)
    assert lock_of().is_held(second)


def test_who_ended_with_a_commit_under_way_is_followed_by_a_fence(lock_of):
    lock_of().end(lock_of().take(), cleanly=False)
    assert not lock_of().take().follows_cleanly


def test_a_term_expires_unless_it_is_extended(lock_of, clock):
    first = lock_of().take()
    clock[0] += LASTS_S - 1
    lock_of().extend(first)
    clock[0] += LASTS_S - 1
    assert lock_of("another").take() is None
    clock[0] += 2
    assert not lock_of("another").take().follows_cleanly


def test_the_term_of_a_process_that_has_ended_on_this_host_is_taken_at_once(objects):
    gone = Owner(pid=2**22 + 1, begun=0.0)
    assert Terms(objects, gone).take()
    assert not Terms(objects).take().follows_cleanly
    again = Owner(begun=psutil.Process().create_time() - 5)  # its number came again
    assert again.has_ended()
    assert not Owner().has_ended()
    assert not replace(gone, host="another").has_ended()


def test_an_answer_that_was_lost_is_no_term_that_was_lost(lock_of, objects, monkeypatch):
    real = StoreObjects.create
    monkeypatch.setattr(StoreObjects, "create", lambda *given: real(*given) and False)
    assert lock_of().take().number == 1


def test_old_terms_go_and_who_slept_through_them_holds_none(lock_of, objects):
    sleeper = lock_of().take()
    lock_of().end(sleeper, cleanly=True)
    for _ in range(300):
        lock_of().end(lock_of().take(), cleanly=True)
    assert len(objects.names()) <= terms._MOST + 2
    assert not lock_of().is_held(sleeper)
    assert lock_of().take().number == 302


def test_whoever_creates_a_term_that_was_removed_does_not_get_it(lock_of, objects, monkeypatch):
    for _ in range(150):
        lock_of().end(lock_of().take(), cleanly=True)
    real, slept = StoreObjects.names, [["000000000003", "000000000003.said"]]
    lists = lambda self: slept.pop() if slept else real(self)  # noqa: E731
    monkeypatch.setattr(StoreObjects, "names", lists)
    objects.delete("000000000004")
    assert lock_of().take() is None


def test_an_object_names_its_owner_and_when_it_expires(lock_of, objects):
    lock_of().take()
    said = json.loads(objects.get("000000000001"))
    assert said["owner"] == {"host": "a host", "pid": 1, "begun": 0.0}
    assert said["expires_at_s"] == 1000 + LASTS_S


@pytest.fixture
def in_memory(objects, monkeypatch):
    """The lock of a lake whose store is in memory."""
    monkeypatch.setattr(lock, "objects_at", lambda uri: objects)
    monkeypatch.setattr(lock, "require_created_once", lambda root: None)
    return objects


@pytest.mark.parametrize("table", ["windows", "windows/"], ids=["ours", "deltalake's"])
def test_a_writer_that_lost_the_lock_cannot_commit(in_memory, table):
    place = "s3://bucket/lake/meter"
    with (
        pytest.raises(RetryableError, match="another run has taken the pipeline's lock"),
        term_of(place, lambda number: None),
    ):
        commit(f"{place}/{table}")
        in_memory.create("000000000002", b"{}")
        commit(f"{place}/{table}")
    commit(f"{place}/{table}")  # it holds none any more, and asks for none


def test_after_a_failed_publish_each_table_is_fenced(in_memory):
    fenced = []
    place = "s3://bucket/lake/meter"
    with pytest.raises(OSError, match="no answer"), term_of(place, fenced.append):
        raise OSError("no answer")
    with pytest.raises(InputError), term_of(place, fenced.append):
        raise InputError("a", "b")
    with term_of(place, fenced.append):
        pass
    assert fenced == [2]


def test_a_store_whose_puts_race_is_refused_unless_there_is_one_publisher(objects, monkeypatch):
    monkeypatch.setattr(object_store, "objects_at", lambda uri: objects)
    require_created_once("s3://bucket/right")

    monkeypatch.setattr(StoreObjects, "create", lambda self, name, content: True)
    with pytest.raises(InputError, match=r"2 of 2 created the same object.*STRANDLINE_PUBLISHERS"):
        require_created_once("s3://bucket/wrong")
    monkeypatch.setattr(StoreObjects, "create", _not_implemented)
    with pytest.raises(InputError, match=r"hold when they race \(not one was created\)"):
        require_created_once("s3://bucket/without")
    monkeypatch.setenv("STRANDLINE_PUBLISHERS", "one")
    with term_of("s3://bucket/wrong/meter", lambda number: None):
        assert objects.names() == []
    monkeypatch.setenv("STRANDLINE_PUBLISHERS", "two")
    with pytest.raises(InputError, match="'two' is not known"), term_of("s3://b/m", print):
        pass


def _not_implemented(self, name, content):
    raise OSError("NotImplemented: A header you provided implies functionality")


def test_a_race_is_won_once(objects):
    assert race(objects.create, objects.delete) == {1}
    assert objects.names() == []


@pytest.fixture
def store(tmp_path):
    """A pipeline of a lake that is named by a URI, as on an object store: nobody locks a file."""
    return Lake(f"file://{tmp_path}").pipeline("meter")


def test_a_commit_is_tried_at_just_the_version_after_the_one_that_was_read(store):
    rows = pa.table({"a": [1]})
    store.append("windows", rows)
    mine, other = store.table("windows"), store.table("windows")
    store.append("windows", rows, to=other)
    with (
        pytest.raises(RetryableError, match="somebody else has written it meanwhile"),
        storage_errors("here"),
    ):
        store.append("windows", rows, to=mine)
    assert store.rows("windows") == 2


def test_a_fence_is_a_commit_of_each_table_that_there_is_and_changes_no_row(store):
    for name in ("windows", "runs"):
        store.append(name, pa.table({"a": [1]}))
    mine = store.table("windows")
    store._fence(7)
    for name in ("windows", "runs"):
        assert store.table(name).transaction_version("strandline.lock") == 7
        assert (store.version(name), store.rows(name)) == (1, 1)
    assert store.version("timeline") is None
    with pytest.raises(CommitFailedError):
        store.append("windows", pa.table({"a": [1]}), to=mine)


def test_who_finds_that_the_ledger_has_gone_on_tries_again(store):
    def append(name):
        ledger = Ledger(store)
        for _ in range(10):
            ledger.append(Entry(name, 1, "started", "backfill"), datetime(2024, 3, 1, tzinfo=UTC))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(append, "abc"))
    entries = Ledger(store).entries()
    assert [entry.position for entry in entries] == list(range(1, 31))
    assert sorted(entry.run_id for entry in entries) == [*"a" * 10, *"b" * 10, *"c" * 10]
