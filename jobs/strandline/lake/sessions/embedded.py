"""Sail: an engine in a child process, which speaks Spark Connect and needs no Java."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING

from strandline.errors import InputError, RetryableError, UnexpectedError
from strandline.lake.local import MEMORY
from strandline.lake.sessions import sail_server
from strandline.lake.sessions.choice import TRUST
from strandline.lake.sessions.linked_version import link_version
from strandline.lake.sessions.protocol import register
from strandline.lake.sessions.remote import connected, keep_settings, limit_retries
from strandline.lake.sessions.sail_server import others_who_may_log_in
from strandline.lake.sessions.settings import EVERYWHERE, WITHOUT_LINES
from strandline.lake.store.places import is_uri, uri_of
from strandline.lake.store.reads import LOG, columns_in
from strandline.spec.common import EngineName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

VERSION = "0.7.2"
"""The version of `pysail` whose results were compared with Flink's."""
_PLACE = "engine sail"
_SECONDS_TO_END = 5.0
IDLE_SECONDS = "SAIL_SPARK__SESSION_TIMEOUT_SECS"
"""The environment variable with the seconds after which a session without queries ends."""
_SECONDS_OF_A_YEAR = 365 * 24 * 60 * 60
_LEAST_TASKS = 2
_RETRIES = 4
"""The retries of a failed call, some seconds in all: the server is a child process."""
_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
"""Matches paths at which Sail finds a Delta table; it encodes or decodes other characters."""
_SIZE = re.compile(r"([0-9]{1,9})([kmgt])b?")
_SHIFTS = {"k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True)
class EmbeddedSession:
    """A session on a private server; see `EngineSession`.

    Attributes:
        server: the server's process, which ends with this process.
        folder: the folder for computed rows and for the server's socket.
    """

    spark: SparkSession
    server: subprocess.Popen[str]
    folder: Path
    engine: EngineName = "sail"
    version: str = VERSION
    on_one_machine: bool = True
    for_few_rows: Mapping[str, str] = field(default_factory=dict)
    answers_as_spark: bool = False
    _numbers: Iterator[int] = field(default_factory=count, repr=False)

    @property
    def has_ended(self) -> bool:
        """Whether the server's process has ended, as if it was killed for lack of memory."""
        return self.server.poll() is not None

    @property
    def parallelism(self) -> int:
        """The processors of this machine."""
        return os.cpu_count() or 1

    def computed(self, rows: DataFrame) -> DataFrame:
        """The rows, computed once and kept in local files."""
        folder = self.folder / str(next(self._numbers))
        rows.write.parquet(self.to_write(str(folder)))
        folder.mkdir(exist_ok=True)  # of no rows Sail writes no file
        columns = self.columns_of(rows, str(folder))
        return self.parquet(self.spark.read.schema(columns), str(folder))

    def table_at(self, place: str, version: int | None = None) -> str:
        """The place of a Delta table; a link if its path has characters that Sail misreads.

        For a version it is a folder of links without later commits: Sail finds no version before
        the last checkpoint, which any commit may write while a run reads.
        """
        if version is not None and not is_uri(place) and (Path(place) / LOG).is_dir():
            folder = self.folder / f"version-{next(self._numbers)}"
            return link_version(Path(place), version, folder)
        if is_uri(place) or _PLAIN.fullmatch(place):
            return place
        link = self.folder / f"table-{sha256(place.encode()).hexdigest()[:16]}"
        if not link.is_symlink():
            link.symlink_to(place)
        return str(link)

    def parquet(self, reader: DataFrameReader, place: str) -> DataFrame:
        """See `EngineSession`; it uses a URI, which is never a pattern."""
        return reader.parquet(uri_of(place))

    def to_write(self, place: str) -> str:
        """The place of a folder of Parquet files for the writer."""
        return uri_of(place)

    def columns_of(self, rows: DataFrame, place: str) -> StructType:
        """See `EngineSession`; by a file on this machine, which is quicker than by the server."""
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - for runs alone

        found = None if is_uri(place) else columns_in(place)
        return rows.schema if found is None else from_arrow_schema(found, prefer_timestamp_ntz=True)

    def stop(self) -> None:
        """End the session and its server, and remove the computed rows."""
        try:
            with suppress(Exception):  # the server may be gone already
                self.spark.stop()
            _end(self.server)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def start_embedded(
    conf: Mapping[str, str] | None = None,
    *,
    trust_this_machine: bool = False,
    needs_network: bool = False,
) -> EmbeddedSession:
    """Open a session of Sail that no other user of this machine can reach.

    Args:
        conf: settings of the session.
        trust_this_machine: whether it may listen on a port that other users could reach.
        needs_network: whether it needs the network, as for an object store, so that it cannot be
            isolated.

    Raises:
        InputError: Sail is not installed, or has another version; or it cannot be isolated, and
            others may log in on this machine.
    """
    _require_version()
    settings = {**EVERYWHERE, **WITHOUT_LINES, **(conf or {})}
    memory = settings.pop(MEMORY, None)
    server_settings = _server_settings(_default_memory() if memory is None else bytes_of(memory))
    folder = Path(tempfile.mkdtemp(prefix="strandline-sail-", dir=_temporary_folder()))
    server = None
    try:
        server, target = _served(folder, server_settings, trust_this_machine, needs_network)
        spark = connected(target, settings, extra="sail")
        spark.client.disable_reattachable_execute()
        limit_retries(spark, _RETRIES)
        keep_settings(spark)
    except BaseException as error:
        if server is not None:
            _end(server)
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, TimeoutError):
            raise RetryableError(_PLACE, f"its server accepts {error}", "run it again") from None
        raise
    session = EmbeddedSession(spark, server, folder)
    register(session)
    return session


def bytes_of(size: str) -> int:
    """The bytes of a size in Spark's format, `4g` or `512m`.

    Raises:
        InputError: it is not a size.
    """
    found = _SIZE.fullmatch(size.strip().lower())
    if found is None:
        raise InputError(f"spark: {MEMORY}", f"{size!r} is not a size", "write it as 4g or 512m")
    return int(found[1]) << _SHIFTS[found[2]]


def _temporary_folder() -> str:
    """The folder for temporary files of this process.

    Raises:
        InputError: Sail cannot read tables by links in the folder.
    """
    folder = tempfile.gettempdir()
    if not _PLAIN.fullmatch(folder):
        raise InputError(
            f"TMPDIR {folder}",
            "Sail finds no table below such a path",
            "name a folder of letters, digits, and . _ - only, or give --engine spark",
        )
    return folder


def _default_memory() -> int:
    """Three fifths of this machine's memory, in bytes; Sail reserves more than it uses."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 5


def _served(
    folder: Path, settings: Mapping[str, str], trust_this_machine: bool, needs_network: bool
) -> tuple[subprocess.Popen[str], str]:
    """A server's process, and its address for gRPC."""
    why = "some table lies on other machines"
    if not needs_network:
        server, started = _started(settings, folder, str(folder))
        if "socket" in started:
            return server, f"unix:{started['socket']}"
        _end(server)
        why = f"this system allows no network namespace of its own ({started['closed']})"
    others = others_who_may_log_in()
    if others and not trust_this_machine:
        raise InputError(
            _PLACE,
            f"would listen on a port without authentication: {why}, and "
            f"{', '.join(others[:3])} may log in here and could run code as this user",
            f"give --trust-this-machine or {TRUST}=1 if that is no danger, or --engine spark",
        )
    server, started = _started(settings, folder)
    return server, f"127.0.0.1:{started['port']}"


def _started(
    settings: Mapping[str, str], folder: Path, *arguments: str
) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """A server's process, and the first line of its output.

    Raises:
        UnexpectedError: it has ended without output.
    """
    log = folder / "log"
    with log.open("w") as errors:
        server = subprocess.Popen(
            [sys.executable, sail_server.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**settings, **os.environ, "RUST_LOG": "error"},
            start_new_session=True,  # Ctrl-C is for the command, which ends the server
        )
    out: IO[str] | None = server.stdout
    line = out.readline() if out is not None else ""
    if not line:
        _end(server)
        last_line = "".join(log.read_text().strip().splitlines()[-1:])
        problem = last_line or f"it ended with {server.returncode}"
        raise UnexpectedError(_PLACE, f"its server does not start ({problem})", "try again")
    started: dict[str, str] = json.loads(line)
    return server, started


def _server_settings(memory: int) -> dict[str, str]:
    """The server's environment variables: its memory limit, its tasks, how it writes files."""
    return {
        "SAIL_RUNTIME__MEMORY_POOL__TYPE": "greedy",
        "SAIL_RUNTIME__MEMORY_POOL__GREEDY__MAX_SIZE": str(memory),
        # with one task Sail makes plans of some sorted unions that its own check refuses
        "SAIL_EXECUTION__DEFAULT_PARALLELISM": str(max(os.cpu_count() or 1, _LEAST_TASKS)),
        # as Apache Spark writes: zstd, Sail's default, takes a sixth of building the windows
        "SAIL_PARQUET__COMPRESSION": "snappy",
        # by default a session ends after a quarter of an hour without a query, as while a large
        # diff is published or a person is waited for; the server ends with its client anyway
        IDLE_SECONDS: str(_SECONDS_OF_A_YEAR),
    }


def _end(server: subprocess.Popen[str]) -> None:
    """End a server; it is killed if it does not end soon, since it has nothing to finish."""
    for stream in (server.stdin, server.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    try:
        server.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _require_version() -> None:
    try:
        found = version("pysail")
    except PackageNotFoundError:
        raise InputError(_PLACE, "pysail is not installed", "install strandline[sail]") from None
    if found != VERSION:
        raise InputError(
            _PLACE,
            f"pysail is {found}; {VERSION} is the version tested against Flink's answers",
            f"install pysail=={VERSION}",
        )
