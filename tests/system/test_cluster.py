"""The product on a Spark cluster: what is published is what one machine publishes."""

from __future__ import annotations

import time

import pytest
from clusters import SMALL, cluster_of_plain_spark
from kills import Home
from lakes import SPEC, a_week, land

pytestmark = pytest.mark.system

BACKFILL = ("backfill", "--start", "2024-03-01", "--end", "2024-03-05")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with cluster_of_plain_spark(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def begins(tmp_path_factory):
    """Some days of a pipeline of sessions have landed: of all windows these ask most of Spark."""
    home = Home(tmp_path_factory.mktemp("begins"))
    home.write_spec({"window": {"session": "20m"}, "spark": {**SPEC["spark"], **SMALL}})
    land(home.folder / "lake", a_week(days=5))
    return home


@pytest.fixture(scope="module")
def of_one_machine(begins, tmp_path_factory):
    home = begins.copy(tmp_path_factory.mktemp("of-one-machine"))
    home.run((*BACKFILL, "--master", "local[2]"))
    return home.content()


@pytest.fixture
def home(begins, tmp_path, monkeypatch):
    """A lake to run over; an executor that wanted a Python would find none."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/python")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    return begins.copy(tmp_path)


@pytest.mark.deep
def test_workers_without_delta_or_python_publish_what_one_machine_does(
    cluster, home, of_one_machine
):
    home.run((*BACKFILL, "--master", cluster.master))
    assert home.content() == of_one_machine


def test_when_a_worker_dies_the_run_goes_on_and_publishes_the_same(cluster, home, of_one_machine):
    """What has been observed by then, two workers without Delta or Python have observed."""
    run = home.start((*BACKFILL, "--master", cluster.master))
    while home.steps() < 2:  # it has started and observed: it is rebuilding
        assert run.poll() is None, home.said
        time.sleep(0.002)
    cluster.kill_a_worker()
    assert run.wait(timeout=600) == 0, home.said
    assert home.content() == of_one_machine
