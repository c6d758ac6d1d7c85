"""What tests of all kinds share: hypothesis profiles, and one Spark session for all of them."""

from __future__ import annotations

import gc
import logging
import os
import shutil
from dataclasses import replace
from functools import partial

import psutil
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# shared machines stall: an example may take long, and that says nothing about the code
_LENIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# what is drawn is the same each time: a change fails by what it changes
_REPEATABLE = {**_LENIENT, "derandomize": True, "database": None, "print_blob": True}
_ANEW = {**_LENIENT, "derandomize": False, "print_blob": True}
settings.register_profile("quick", max_examples=5, **_REPEATABLE)
settings.register_profile("dev", max_examples=50, **_REPEATABLE)
settings.register_profile("ci", max_examples=1000, **_REPEATABLE)
settings.register_profile("deep", max_examples=int(os.environ.get("EXAMPLES", "5000")), **_ANEW)
_QUICK = "quick" if os.environ.get("QUICK") else "dev"
settings.load_profile("ci" if os.environ.get("CI") else _QUICK)
# hypothesis also draws literals of whatever modules are loaded: a test alone would draw others, and
# so would one after a change of any number in the library
providers._get_local_constants = providers.Constants
pytest.register_assert_rewrite("replayed")

# py4j tells of every closed connection after pytest has closed the log's stream
logging.getLogger("py4j").setLevel(logging.WARNING)


# loading modules makes objects by the hundred thousand, and hardly any garbage
gc.set_threshold(100_000)


def pytest_collection_finish():
    """The garbage collector leaves the modules alone that are loaded by now."""
    gc.freeze()


def pytest_collection_modifyitems(items):
    """On another engine what only Apache Spark proves, or runs, is skipped by name."""
    from engines import ENGINE

    for item in items:
        mark = item.get_closest_marker("only_on_spark")
        if mark is not None and ENGINE != "spark":
            item.add_marker(pytest.mark.skip(reason=f"only on spark: {mark.kwargs['reason']}"))


@pytest.fixture(scope="session")
def oracle(pytestconfig):
    """What Flink answers on the flights of 2013 as of a horizon (in ms; none: after the year).

    Computed once for all test processes, and again when the oracle's code or input has changed.
    """
    from kept_answers import kept_answer

    return partial(kept_answer, pytestconfig.cache.mkdir("flights_oracle"))


@pytest.fixture(scope="session")
def flights_lake(tmp_path_factory):
    """A lake where the flights of 2013 have landed; not to be changed."""
    import land_flights

    lake = tmp_path_factory.mktemp("flights")
    _, written = land_flights.land(str(lake))
    assert written
    return lake


@pytest.fixture
def own_flights_lake(flights_lake, tmp_path):
    """The same, to change: Delta never writes into a file that there is, so they are linked."""
    return shutil.copytree(flights_lake, tmp_path, copy_function=os.link, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def begun(tmp_path_factory):
    """Gives a line in a folder of its own; the lake that it begins with is built once for all."""
    lines = {}

    def begun(build, spark, folder, *args, **changes):
        asked = (build, repr(args), repr(changes))
        if asked not in lines:
            lines[asked] = build(spark, tmp_path_factory.mktemp("begun"), *args, **changes)
        return replace(lines[asked], spark=spark).copy(folder)

    return begun


# else its collector, beside the tests, goes after each generated class again and again; and what
# it would compile well is not run often enough to pay for that (503 processor seconds to 461)
_FOR_HALF_AN_HOUR = (
    "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC -Xms2g -Xmn1200m -XX:MetaspaceSize=1g "
    "-XX:ReservedCodeCacheSize=512m"
)


MOST_BYTES_OF_A_SERVER = 2**30
"""Sail keeps some of each query until its process ends."""


@pytest.fixture(scope="session")
def started():
    """Gives the session of all tests; of Sail another one once its server has grown."""
    kept = []

    def current():
        if kept and hasattr(kept[0], "server"):
            server = psutil.Process(kept[0].server.pid)
            if server.memory_info().rss > MOST_BYTES_OF_A_SERVER:
                kept.pop().stop()
        if not kept:
            kept.append(_start())
        return kept[0]

    yield current
    for one in kept:
        one.stop()


@pytest.fixture(scope="module")
def spark(started):
    """A session of the engine that the variable ENGINE names: spark, connect or sail.

    Apache Spark is tuned for small input: few partitions, no replanning. A run over few rows has
    its queries interpreted; one over a year of flights, compiled.
    """
    return started().spark


def _start():
    from engines import ENGINE

    from strandline.lake.sessions.choice import EngineChoice
    from strandline.lake.sessions.start import start

    if ENGINE == "spark":
        return _classic()
    choice = EngineChoice(ENGINE, remote=os.environ.get("STRANDLINE_REMOTE"))
    return start(choice, "strandline tests", few_rows=ENGINE == "connect")


def _classic():
    from strandline.lake.local import JAVA_OPTIONS, local_settings
    from strandline.lake.sessions.classic import SMALL_INPUT, start_classic
    from strandline.lake.sessions.settings import FEW_ROWS

    settings = {
        **{name: value for name, value in SMALL_INPUT.items() if name not in FEW_ROWS},
        "spark.sql.adaptive.enabled": "false",
        JAVA_OPTIONS: f"{local_settings()[JAVA_OPTIONS]} {_FOR_HALF_AN_HOUR}",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "3g",
    }
    return start_classic("strandline tests", settings, master="local[2]")


@pytest.fixture(scope="module")
def session(spark):
    """The same for a module of queries over a few rows: one partition."""
    from strandline.lake.sessions.settings import for_input_of

    with for_input_of(spark, size_bytes=0):
        yield spark
