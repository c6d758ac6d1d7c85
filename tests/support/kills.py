"""Runs that are killed: what stands before one, how it is called, and when it dies."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import psutil
import yaml
from deltalake import DeltaTable
from lakes import SPEC, a_week, land
from processes import command_line

from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake

COMMAND = str(Path(sys.executable).with_name("strandline"))
TABLES = ("windows", "firings", "quarantine", "completeness")
Rows = Iterable[Mapping[str, Any]]
Content = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Kind:
    """A kind of run, over a lake on which others have run before it.

    Attributes:
        command: what is typed after `strandline`, the pipeline's name but for.
        lands: what lands before it, behind what has landed.
        edits: of the pipeline's file, by dotted paths: `source__valid`.
        steps: of such a run, up to the one that begins to publish.
        engine: the engine that runs it.
    """

    name: str
    command: tuple[str, ...]
    lands: Rows = ()
    edits: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] = ("started", "observed", "staged", "audited", "publishing")
    engine: str = "spark"

    def __str__(self) -> str:
        return self.name


DAY = Kind("a scheduled day", ("advance", "--to", "2024-03-05"), edits={"spark": {}}, engine="sail")


@dataclass(frozen=True)
class Home:
    """A folder with a lake and the file of its one pipeline."""

    folder: Path

    @property
    def root(self) -> Path:
        """Where the pipeline's tables lie."""
        return self.folder / "lake" / "meter"

    @property
    def lake(self) -> str:
        """The place of the lake."""
        return str(self.folder / "lake")

    @property
    def environment(self) -> dict[str, str]:
        """What commands read beside the environment of the test."""
        return {"STRANDLINE_PIPELINES": str(self.folder), "STRANDLINE_LAKE": self.lake}

    def copy(self, folder: Path) -> Home:
        """A home of its own that begins as this one stands."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Home(folder)

    @classmethod
    def of_five_days(cls, folder: Path) -> Home:
        """Five days have landed, three are published."""
        home = cls(folder)
        home.write_spec({})
        home.land(a_week(days=5))
        home.run_on_sail(("advance", "--to", "2024-03-04"))
        return home

    def write_spec(self, edits: Mapping[str, Any]) -> None:
        content = deepcopy(SPEC)
        for path, value in edits.items():
            *above, name = path.split("__")
            place = content
            for step in above:
                place = place[step]
            place[name] = value
        (self.folder / "meter.yaml").write_text(yaml.safe_dump(content))

    def land(self, rows: Rows) -> None:
        if rows:
            land(self.folder / "lake", rows, mode="append")

    def start(self, command: tuple[str, ...], said: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a run in a process group of its own; what it says goes into a file."""
        verb, *arguments = command
        with (said or self.folder / "said").open("wb") as output:
            return subprocess.Popen(
                [COMMAND, verb, "meter", *arguments],
                env={**os.environ, **self.environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text()

    def run(self, command: tuple[str, ...]) -> None:
        """Run to the end, which is a good one."""
        exit_code = self.start(command).wait(timeout=900)
        assert exit_code == 0, self.said
        assert "Traceback" not in self.said

    def run_on_sail(self, command: tuple[str, ...]) -> None:
        """The same where it is quick and leaves the same tables: see `test_two_engines`."""
        file = self.folder / "meter.yaml"
        text = file.read_text()
        file.write_text(yaml.safe_dump({**yaml.safe_load(text), "spark": {}}))
        self.run((*command, "--engine", "sail"))
        file.write_text(text)

    def ledger(self) -> list[Entry]:
        return Ledger(Lake.at(self.lake).pipeline("meter")).entries()

    def files(self) -> set[str]:
        """Every file below the pipeline's folder, but for reports."""
        return {*_files_below(self.root)}

    def steps(self) -> int:
        """How many commits the ledger has: quicker than to read it."""
        return sum(1 for _ in (self.root / "runs" / "_delta_log").glob("*.json"))

    def content(self, versions: Mapping[str, int | None] | None = None) -> Content:
        """The rows of the published tables, in a fixed order, without `run_id`."""
        found = {}
        for name in TABLES:
            version = None if versions is None else versions[name]
            table = DeltaTable(f"{self.lake}/meter/{name}", version=version).to_pyarrow_table()
            rows = [
                {key: value for key, value in sorted(row.items()) if key != "run_id"}
                for row in table.to_pylist()
            ]
            found[name] = sorted(
                rows, key=lambda row: [(v is not None, str(v)) for v in row.values()]
            )
        return found

    def contents_by_ledger(self) -> Iterator[Content]:
        """What a reader of the ledger's versions has met, publish by publish."""
        for entry in self.ledger():
            if entry.step == "published":
                yield self.content(entry.versions)


def _files_below(folder: Path | str) -> Iterator[str]:
    """As `os.walk` finds them, in half its time: a run is asked for them all the while."""
    with suppress(FileNotFoundError), os.scandir(folder) as found:
        for one in found:
            if not one.is_dir():
                yield one.path
            elif one.name != "_reports":
                yield from _files_below(one.path)


@dataclass(frozen=True)
class Written:
    """What a run has written: files, and how many of them are commits of Delta tables.

    Attributes:
        before: files, before it publishes.
        publishing: files, from its step `publishing` on.
        commits: of all of these.
        killed: whether the run was killed on its way.
    """

    before: int = 0
    publishing: int = 0
    commits: int = 0
    killed: bool = False

    def and_new(self, files: set[str], *, publishing: bool) -> Written:
        """With some more files."""
        commits = sum(name.endswith(".json") and "/_delta_log/" in name for name in files)
        return Written(
            self.before + len(files) * (not publishing),
            self.publishing + len(files) * publishing,
            self.commits + commits,
        )


class Kill(Protocol):
    """Which processes of a run are killed, and when.

    Attributes:
        who: `group`: the whole process group at once; else `python` or `engine` alone.
    """

    @property
    def who(self) -> str: ...

    def is_due(self, written: Written, usual: Written) -> bool:
        """Whether it is time, by what the run has written and what an undisturbed one writes."""


@dataclass(frozen=True)
class KillAtFile:
    """After a share, in [0, 1), of the files that an undisturbed run writes.

    Attributes:
        in_publishing: whether files count from the ledger's step `publishing` on only.
    """

    who: str
    in_publishing: bool
    share: float

    @classmethod
    def drawn(cls, kind: Kind, number: int) -> KillAtFile:
        """The kill of a kind of run by its number; every other one is in publishing."""
        chance = random.Random(f"{kind} {number}")
        who = chance.choice(("group", "group", "python", "engine"))
        return cls(who, number % 2 == 0, chance.random())

    def is_due(self, written: Written, usual: Written) -> bool:
        if self.in_publishing:
            return written.publishing > self.share * usual.publishing
        every = written.before + written.publishing
        return every > self.share * (usual.before + usual.publishing)


@dataclass(frozen=True)
class KillAtCommit:
    """The whole process group, as soon as a commit stands, counted from 1."""

    number: int
    who: str = "group"

    def is_due(self, written: Written, usual: Written) -> bool:
        return written.commits >= self.number


def run_watched(
    home: Home, kind: Kind, kill: Kill | None = None, usual: Written = Written()
) -> Written:
    """Run a kind of run, and kill it on its way if asked; returns what it has written by then."""
    first, known, written = home.steps(), home.files(), Written()
    run = home.start((*kind.command, "--engine", kind.engine))
    ended = False
    while not ended:
        ended = run.poll() is not None
        files = home.files()
        publishing = home.steps() - first >= len(kind.steps)
        written = written.and_new(files - known, publishing=publishing)
        known = files
        if kill is not None and not ended and kill.is_due(written, usual):
            _kill(run, kill.who)
            return replace(written, killed=True)
        time.sleep(0.01)
    return written


def _kill(run: subprocess.Popen[bytes], who: str) -> None:
    """Kill, and wait for what was killed, but not for what it leaves behind."""
    if who == "group":
        os.killpg(run.pid, signal.SIGKILL)
    elif who == "python":
        run.kill()
    else:
        for process in psutil.Process(run.pid).children(recursive=True):
            command = command_line(process)
            if "sail_server" in command or command.split(" ", 1)[0].endswith("java"):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
    run.wait(timeout=300)
