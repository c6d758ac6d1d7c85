"""The product on a Spark cluster: what is published is what one machine publishes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from clusters import SMALL, cluster_of_plain_spark
from kills import Content, Home
from lakes import SPEC, a_week, land

from strandline.lake.local import local_settings

pytestmark = pytest.mark.system

BACKFILL = ("backfill", "--start", "2024-03-01", "--end", "2024-03-05")
_START = local_settings(short=True)
SPARK = {
    **SPEC["spark"],
    **SMALL,
    **{name: _START[name] for name in _START if "driver.extra" in name},
}
"""Settings of a pipeline here: its driver's JVM starts as one does that is all of Spark."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with cluster_of_plain_spark(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def begins(tmp_path_factory):
    """Some days have landed."""
    home = Home(tmp_path_factory.mktemp("begins"))
    home.write_spec({"spark": SPARK})
    land(home.folder / "lake", a_week(days=5))
    return home


@pytest.fixture
def home(begins, tmp_path, monkeypatch):
    """A lake to run over; an executor that wanted a Python would find none."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/python")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    return begins.copy(tmp_path / "begins")


@pytest.mark.deep
def test_workers_without_delta_or_python_publish_what_one_machine_does(cluster, home, tmp_path):
    """Of sessions: of all windows these ask most of Spark."""
    home.write_spec({"window": {"session": "20m"}, "spark": SPARK})
    right = of_one_machine(home, tmp_path)
    home.run((*BACKFILL, "--master", cluster.master))
    assert home.content() == right


def of_one_machine(home: Home, folder: Path) -> Content:
    """What a run on this machine leaves of the same lake."""
    own = home.copy(folder / "of-one-machine")
    own.run_on_sail(BACKFILL)
    return own.content()


def test_when_a_worker_dies_the_run_goes_on_and_publishes_the_same(cluster, home, tmp_path):
    """What has been observed by then, two workers without Delta or Python have observed."""
    right = of_one_machine(home, tmp_path)
    run = home.start((*BACKFILL, "--master", cluster.master))
    while home.steps() < 2:  # it has started and observed: it is rebuilding
        assert run.poll() is None, home.said
        time.sleep(0.05)
    cluster.kill_a_worker()
    assert run.wait(timeout=600) == 0, home.said
    assert home.content() == right


FUNCTION = """
def told(key, window, records, watermark):
    return [{"amounts": records["amount"].to_pylist(), "at": watermark}]
"""


@pytest.mark.deep
def test_functions_and_replays_run_on_workers_that_do_not_have_the_library(
    cluster, tmp_path, monkeypatch
):
    home = Home(tmp_path / "begins")
    home.folder.mkdir()
    (home.folder / "meters.py").write_text(FUNCTION)
    home.write_spec(
        {
            "window": {"session": "20m"},
            "trigger": {"continuous": "15m", "purging": True},
            "firings": True,
            "process": "meters:told",
            "returns": {"amounts": "array<bigint>", "at": "bigint"},
            "spark": SPARK,
        }
    )
    land(home.folder / "lake", a_week(days=5))
    local = home.copy(tmp_path / "one-machine")
    local.run((*BACKFILL, "--master", "local[2]"))
    monkeypatch.setenv("PYSPARK_PYTHON", str(_python_without_the_library(tmp_path)))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    home.run((*BACKFILL, "--master", cluster.master))
    content = home.content()
    assert any(len(row["amounts"]) > 1 for row in content["firings"])
    assert content == local.content()


def _python_without_the_library(folder: Path) -> Path:
    """A Python that has pyarrow, and in whose workers `import strandline` fails."""
    hidden = folder / "hidden" / "strandline.py"
    hidden.parent.mkdir()
    hidden.write_text("raise ImportError('the library is not installed here')\n")
    python = folder / "python"
    found_first = f'export PYTHONPATH="{hidden.parent}:$PYTHONPATH"'
    python.write_text(f'#!/bin/sh\n{found_first}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python
