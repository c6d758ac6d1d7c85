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
DRIVER = """
import sys

from strandline.lake import small_diff

small_diff.SMALL_BYTES = -1  # every diff is a large one

from strandline.cli import main

main()
"""
_TIMEOUT_S = 300


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Five days have landed, three are published; what an undisturbed run makes of the fourth."""
    home = Home.of_five_days(tmp_path_factory.mktemp("base"))
    undisturbed = home.copy(tmp_path_factory.mktemp("undisturbed"))
    undisturbed.run_on_sail(DAY)
    return home, undisturbed.content()


@pytest.fixture
def jvm(tmp_path_factory) -> Iterator[dict[str, str]]:
    """A JVM that no driver has started, and that ends with none: how a driver finds it."""
    said = tmp_path_factory.mktemp("jvm") / "said"
    settings = {"spark.master": "local[2]", "spark.ui.enabled": "false", **local_settings()}
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


def wait_for(happened, pause_s: float = 0.001):
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
            [sys.executable, "-c", DRIVER, verb, "meter", *arguments],
            env={**os.environ, **jvm, **{name: str(path) for name, path in places.items()}},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def versions(home: Home) -> dict[str, int]:
    return {name: DeltaTable(str(home.root / name)).version() for name in (*TABLES, "timeline")}


def folders_of_attempts(home: Home) -> set[Path]:
    """Of the table that a publish writes first."""
    return {*(home.root / "completeness").glob("rows-*")}


def test_a_killed_driver_publishes_nothing_however_long_its_jvm_writes_on(base, jvm, tmp_path):
    begins, right = base
    home = begins.copy(tmp_path)
    before = folders_of_attempts(home)
    driver = start(home, jvm)

    def writing() -> list[Path]:
        assert driver.poll() is None, home.said
        new = folders_of_attempts(home) - before
        return [folder for folder in new if (folder / "_temporary").exists()]

    (left,) = wait_for(writing)
    driver.kill()
    driver.wait()
    at_death, has_written = versions(home), left / "_SUCCESS"
    assert not has_written.exists()
    assert home.ledger()[-1].step == "publishing"

    wait_for(has_written.exists)
    files = {*left.rglob("*.parquet")}
    assert files
    time.sleep(2)
    assert versions(home) == at_death

    home.run(DAY)
    assert home.content() == right
    assert not files & {
        Path(uri) for name in TABLES for uri in DeltaTable(str(home.root / name)).file_uris()
    }

    keeping = ("maintain", "--keep-days", "1")
    home.run(keeping)
    assert files <= {*left.rglob("*.parquet")}  # who knows whether somebody still writes them
    days_ago = time.time() - 3 * 24 * 3600
    for file in left.rglob("*"):
        os.utime(file, (days_ago, days_ago))
    home.run(keeping)
    assert not left.exists()
    assert home.content() == right
