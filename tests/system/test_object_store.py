"""A lake on an object store: servers that run as processes, and the command as users type it.

`make test-stores` runs it: it fetches the servers in Java, and draws more (KILLS, SCHEDULES).
"""

from __future__ import annotations

import os
import random
import subprocess
from dataclasses import dataclass
from threading import Thread

import obstore
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from kills import COMMAND, Home, KillAtCommit, KillAtFile, Kind, run_watched
from lakes import Line, a_spec, a_week, few_at_once
from object_stores import BUCKET, SECRET, StoreHome, s3mock, s3proxy, seaweedfs
from schedules import TABLES, Actor, Overtaken, Schedule

from strandline.errors import InputError
from strandline.lake.sessions.embedded import start_embedded
from strandline.lake.store.lake import Lake
from strandline.lake.store.object_store import StoreObjects, objects_at, race, require_created_once

pytestmark = [pytest.mark.system, pytest.mark.deep]

KILLS = int(os.environ.get("KILLS", "2"))
SCHEDULES = int(os.environ.get("SCHEDULES", "4"))
RETRYABLE = 4
DAY = Kind("a scheduled day", ("advance", "--to", "2024-03-05"))
REBUILD = Kind(
    "a rebuild with updates and deletes",
    (
        *("backfill", "--start", "2024-03-01", "--end", "2024-03-05", "--reason", "why"),
        *("--as-of", "2024-03-04", "--allow-removals"),
    ),
    edits={"source__valid": "amount % 3 > 0", "allowed_lateness": "0s"},
)


@pytest.fixture(scope="module")
def server():
    with seaweedfs() as started, pytest.MonkeyPatch.context() as environment:
        for name, value in started.environment.items():
            environment.setenv(name, value)
        yield started


@pytest.fixture(scope="module")
def base(server, tmp_path_factory):
    """Five days have landed, three are published."""
    home = StoreHome(tmp_path_factory.mktemp("base"), server=server, prefix="base")
    home.write_spec({})
    home.land(a_week(days=5))
    home.run(("advance", "--to", "2024-03-04"))
    return home


@pytest.fixture(scope="module")
def in_a_folder(tmp_path_factory):
    """The same in a folder, and what each kind of run leaves there."""
    home = Home.of_five_days(tmp_path_factory.mktemp("folder"))
    found = {}
    for kind in (DAY, REBUILD):
        own = home.copy(tmp_path_factory.mktemp("own"))
        own.write_spec(kind.edits)
        own.run_on_sail(kind.command)
        found[str(kind)] = own.content()
    return home.content(), found


def answer(home, *arguments, **more):
    return subprocess.run(
        [COMMAND, *arguments],
        env={**os.environ, **home.environment, **more},
        capture_output=True,
        text=True,
        check=False,
    )


def whole_lines(done):
    return " ".join((done.stdout + done.stderr).split())


def test_a_lake_on_a_store_has_the_rows_of_one_in_a_folder(base, in_a_folder, tmp_path):
    before, after = in_a_folder
    assert base.content() == before
    home = base.copy(tmp_path)
    home.write_spec(REBUILD.edits)
    home.run(REBUILD.command)
    assert home.content() == after[str(REBUILD)]


def test_the_secret_is_in_no_object_and_in_nothing_that_is_said(base, tmp_path):
    home, said = base.copy(tmp_path), []
    for command in (
        ("advance", "meter", "--to", "2024-03-05"),
        ("status", "meter", "--deep"),
        ("status", "meter", "--json"),
        ("changes", "meter"),
        ("incomplete", "meter", "--since", "2024-03-01"),
        ("report", "meter", "--output", str(tmp_path / "report")),
        ("runs", "show", "meter", base.ledger()[-1].run_id),
        ("maintain", "meter"),
    ):
        done = answer(home, *command)
        assert done.returncode == 0, whole_lines(done)
        said.append(done.stdout + done.stderr)
    wrong = answer(home, "status", "meter", AWS_SECRET_ACCESS_KEY=SECRET[:-1])
    said.append(wrong.stdout + wrong.stderr)
    contents = [obstore.get(home.objects, name).bytes().to_bytes() for name in home.names()]
    contents += [path.read_bytes() for path in home.folder.rglob("*") if path.is_file()]
    assert len(contents) > 50
    for secret in (SECRET, SECRET[:-1]):
        assert not any(secret in text for text in said)
        assert not any(secret.encode() in content for content in contents)


@pytest.mark.parametrize(
    ("lake", "changed", "code", "told"),
    [
        ("s3://no-such-bucket/lake", {}, 2, "there is no such bucket; create it"),
        (f"s3://{BUCKET}/lake", {"AWS_SECRET_ACCESS_KEY": "x"}, 2, "refuses the credentials"),
        (f"s3://{BUCKET}/lake", {"AWS_ACCESS_KEY_ID": "x"}, 2, "refuses the credentials"),
        (f"s3://{BUCKET}/lake", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, 4, "does not answer"),
        (f"s3://{BUCKET}/lake", {"AWS_ALLOW_HTTP": ""}, 2, "set AWS_ALLOW_HTTP=true"),
        (f"s3://{BUCKET}/lake", {"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, 2, "conditional puts"),
        ("s3://", {}, 2, "names no bucket"),
        (f"s3://{BUCKET}/lake", {"AWS_ACCESS_KEY_ID": ""}, 2, "credentials"),
        ("nfs4://somewhere/lake", {}, 2, "no such kind of store"),
    ],
)
def test_what_is_wrong_with_a_store_is_said_with_place_and_way_out(base, lake, changed, code, told):
    done = answer(base, "--lake", lake, "status", "meter", **changed)
    assert done.returncode == code, whole_lines(done)
    assert told in whole_lines(done)
    assert lake in whole_lines(done)
    assert "Traceback" not in done.stderr


@dataclass(frozen=True)
class StoreLine(Line):
    """A line whose lake is on a store."""

    at: str = ""

    @property
    def lake(self):
        return Lake.at(self.at)


def test_days_and_ranges_that_a_driver_does_not_hold_are_staged_as_objects(
    base, in_a_folder, tmp_path
):
    home = base.copy(tmp_path)
    session = start_embedded({}, trust_this_machine=True, needs_network=True)
    try:
        with few_at_once(60):
            line = StoreLine(session.spark, tmp_path, a_spec(spark={}), at=home.lake)
            assert line.advance("2024-03-05").status == "published"
    finally:
        session.stop()
    assert home.content() == in_a_folder[1][str(DAY)]
    assert not any("/_staging/" in name for name in home.names())


@pytest.mark.parametrize("number", range(KILLS))
def test_a_run_that_is_killed_is_healed_by_the_next(base, in_a_folder, tmp_path, number):
    kind = (DAY, REBUILD)[number % 2]
    chance, home = random.Random(number), base.copy(tmp_path)
    home.write_spec(kind.edits)
    commits = chance.randrange(1, 14)
    kill = KillAtCommit(commits) if number % 4 < 3 else KillAtFile("group", False, chance.random())
    run_watched(home, kind, kill)
    again = home.start(kind.command)
    assert again.wait(timeout=600) == 0, home.said
    assert home.content() == in_a_folder[1][str(kind)]
    assert home.content(home.ledger()[-1].versions) == home.content()


def test_two_runs_at_once_publish_what_one_would(base, in_a_folder, tmp_path):
    home = base.copy(tmp_path)
    command = (*DAY.command, "--force")
    runs = [home.start(command, home.folder / f"said-{number}") for number in range(2)]
    codes = sorted(run.wait(timeout=600) for run in runs)
    said = [(home.folder / f"said-{number}").read_text() for number in range(2)]
    assert codes in ([0, RETRYABLE], [0, 0]), said
    published = [entry for entry in home.ledger() if entry.step == "published"]
    assert len(published) == 1 + codes.count(0)
    assert home.content() == in_a_folder[1][str(DAY)]


class RealTables:
    """Tables on the store; their commits say which term has made them."""

    def __init__(self, root):
        self.root = root
        for name in TABLES:
            write_deltalake(f"{root}/{name}", pa.table({"term": pa.array([0], pa.int64())}))

    def opened(self, name):
        return DeltaTable(f"{self.root}/{name}")

    def length(self, name):
        return self.opened(name).version()

    def append(self, name, opened, number):
        try:
            write_deltalake(
                opened,
                pa.table({"term": pa.array([number], pa.int64())}),
                mode="append",
                commit_properties=CommitProperties(
                    {"userMetadata": str(number)}, max_commit_retries=0
                ),
            )
        except CommitFailedError:
            raise Overtaken from None

    def terms(self, name):
        """The term of each commit after the first."""
        said = [one.get("userMetadata", "0") for one in self.opened(name).history()]
        return [int(term) for term in reversed(said)][1:]


class Racing(Schedule):
    """The processes run at once, and not in turns."""

    def run(self, processes=3):
        self.chance = random.Random(self.seed)
        actors = [RacingActor(self, number, rounds=3) for number in range(processes)]
        threads = [Thread(target=actor.run) for actor in actors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self


class RacingActor(Actor):
    def turn(self):
        self.draw()

    def wait(self):
        """Begin at once."""

    def hand_over(self):
        """Nobody waits."""


def test_whatever_races_and_dies_on_a_real_store_no_earlier_term_commits_later(server):
    published = 0
    for number in range(SCHEDULES):
        root = f"s3://{BUCKET}/terms-{number}"
        done = Racing(number, objects=objects_at(f"{root}/_lock"), tables=RealTables(root)).run()
        assert done.late_commits() == []
        assert len(set(done.published)) == len(done.published)
        for name in TABLES:  # what was acknowledged is there, once
            rows = DeltaTable(f"{root}/{name}").to_pyarrow_table()["term"].to_pylist()
            assert {*done.published} <= {*rows}
            assert rows.count(0) == 1
            assert len(rows) == 1 + len(done.tables.terms(name))
        published += len(done.published)
    assert published


@pytest.mark.parametrize("started", [seaweedfs, s3proxy])
def test_a_store_whose_puts_hold_when_they_race_is_taken(started, monkeypatch):
    with started() as one:
        for name, value in one.environment.items():
            monkeypatch.setenv(name, value)
        require_created_once.cache_clear()
        require_created_once(f"s3://{BUCKET}/probed")


def test_a_store_that_lets_two_create_an_object_is_refused(monkeypatch):
    with s3mock() as one:
        for name, value in one.environment.items():
            monkeypatch.setenv(name, value)
        require_created_once.cache_clear()
        with pytest.raises(InputError, match="no conditional puts that hold when they race"):
            require_created_once(f"s3://{BUCKET}/probed")
        objects = StoreObjects(one.at("again"))
        assert race(objects.create, objects.delete) != {1}
