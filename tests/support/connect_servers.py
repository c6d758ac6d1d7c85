"""A server of Spark Connect on this machine, as somebody else would have started it."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_STARTS_WITHIN_S = 120


@dataclass(frozen=True)
class ConnectServer:
    """Where a server listens, and the token that it wants."""

    remote: str
    token: str


@contextmanager
def connect_server(folder: Path, *, delta: bool = True) -> Iterator[ConnectServer]:
    """A server that is there as long as the block runs."""
    token, port = secrets.token_hex(16), _free_port()
    settings = _SETTINGS | (_DELTA if delta else {}) | {"spark.connect.grpc.binding.port": port}
    home = Path(pyspark.__file__).parent
    command = [
        *(str(home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "2g"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        "spark-internal",
    ]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYSPARK_GATEWAY_PORT"},
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
    }
    with (folder / "connect.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        _wait_for(server, port)
        yield ConnectServer(f"sc://localhost:{port}", token)
    finally:
        server.terminate()
        server.wait(timeout=60)


def _free_port() -> int:
    with closing(socket.socket()) as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(10 * _STARTS_WITHIN_S):
        assert server.poll() is None, "the server has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError
