"""A driver whose Python is killed while its JVM lives on: what that still writes never counts."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from kills import TABLES, Home

from strandline.lake.local import local_settings, spark_folder

pytestmark = pytest.mark.system

DAY = ("advance", "--to", "2024-03-05")
_TIMEOUT_S = 300


@pytest.fixture
def jvm(tmp_path_factory) -> Iterator[dict[str, str]]:
    """A JVM that no driver has started, and that ends with none: how a driver finds it."""
    said = tmp_path_factory.mktemp("jvm") / "said"
    quick = local_settings(short=True)
    settings = {"spark.master": "local[2]", "spark.ui.enabled": "false", **quick}
    named = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    environment = {**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(said)}
    submit = [str(spark_folder() / "bin" / "spark-submit"), *named, "pyspark-shell"]
    process = subprocess.Popen(submit, env=environment, stdin=subprocess.PIPE)
    wait_for(said.exists)
    port, length = struct.unpack(">ii", said.read_bytes()[:8])
    secret = said.read_bytes()[8 : 8 + length].decode()
    yield {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    process.kill()
    process.communicate()


def wait_for(happened, pause_s: float = 0.005):
    """What is found once there is something."""
    end = time.monotonic() + _TIMEOUT_S
    while not (found := happened()):
        assert time.monotonic() < end
        time.sleep(pause_s)
    return found


def start(home: Home, jvm: dict[str, str]) -> subprocess.Popen[bytes]:
    """A driver, nothing but its Python."""
    places = {"STRANDLINE_PIPELINES": home.folder, "STRANDLINE_LAKE": home.folder / "lake"}
    verb, *arguments = DAY
    with (home.folder / "said").open("wb") as output:
        return subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from strandline.cli import main; main()",
                verb,
                "meter",
                *arguments,
            ],
            env={**os.environ, **jvm, **{name: str(path) for name, path in places.items()}},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def versions(home: Home) -> dict[str, int]:
    return {name: DeltaTable(str(home.root / name)).version() for name in (*TABLES, "timeline")}


def writing(home: Home) -> list[Path]:
    """The staged parts that an engine is just writing."""
    return [*(home.root / "_staging").glob("*/*/_temporary")]


def test_a_killed_driver_publishes_nothing_however_long_its_jvm_writes_on(
    five_days, fourth_day, jvm, tmp_path
):
    home, right = five_days.copy(tmp_path), fourth_day.content()
    driver = start(home, jvm)

    def begun() -> list[Path]:
        assert driver.poll() is None, home.said
        return writing(home)

    left = {folder.parent for folder in wait_for(begun)}
    driver.kill()
    driver.wait()
    at_death = versions(home)
    (run_id,) = {folder.parent.name for folder in left}
    steps = [entry.step for entry in home.ledger() if entry.run_id == run_id]
    assert steps[0] == "started"
    assert "staged" not in steps

    wait_for(lambda: all((folder / "_SUCCESS").exists() for folder in left))
    assert any(file for folder in left for file in folder.rglob("*.parquet"))
    time.sleep(2)
    assert versions(home) == at_death

    home.run_on_sail(DAY)
    assert home.content() == right
    home.run(("maintain", "--keep-days", "1"))
    assert all(map(Path.exists, left))  # who knows whether somebody still writes there
    assert home.content() == right
