"""The lock of who publishes: two processes hold it, a driver's Python and its JVM. No Spark."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from strandline.errors import RetryableError
from strandline.lake import lock
from strandline.lake.lock import publisher

(PY4J,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
HOLDING = """
import sys
from pathlib import Path
from types import SimpleNamespace
from py4j.java_gateway import GatewayParameters, JavaGateway
from strandline.lake.lock import publisher

gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(sys.argv[2])))
with publisher(Path(sys.argv[1]), SimpleNamespace(_jvm=gateway.jvm)):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def jvm():
    """A JVM without Spark: its port and its process; it outlives the Python that talks to it."""
    options = {"classpath": str(PY4J), "die_on_exit": False}
    port, process = launch_gateway(return_proc=True, jarpath=str(PY4J), **options)
    yield port, process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(lock, "_TIMEOUT_S", 1)


def holding(path: Path, port: int) -> subprocess.Popen[str]:
    """A driver of its own process that holds the lock, together with a JVM."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    driver = subprocess.Popen([sys.executable, "-c", HOLDING, str(path), str(port)], **pipes)
    assert driver.stdout.readline() == "held\n"
    return driver


def taken(path: Path, spark: object = None) -> bool:
    try:
        with publisher(path, spark):
            return True
    except RetryableError:
        return False


def end(driver: subprocess.Popen[str], how: int | None = None) -> None:
    if how is not None:
        os.kill(driver.pid, how)
    driver.communicate()


@pytest.mark.usefixtures("impatient")
def test_who_publishes_waits_for_the_jvm_of_a_driver_whose_python_was_killed(tmp_path, jvm):
    path, (port, process) = tmp_path / "_lock", jvm
    end(holding(path, port), signal.SIGKILL)
    assert process.poll() is None
    assert not taken(path)
    process.kill()
    process.wait()
    assert taken(path)


@pytest.mark.usefixtures("impatient")
def test_a_driver_that_goes_on_lets_go_in_both_of_its_processes(tmp_path, jvm):
    path, (port, _) = tmp_path / "_lock", jvm
    driver = holding(path, port)
    assert not taken(path)
    end(driver)
    assert taken(path)


@pytest.mark.usefixtures("impatient")
def test_a_jvm_waits_for_a_publisher_that_needs_none(tmp_path, jvm):
    path, (port, _) = tmp_path / "_lock", jvm
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    spark = SimpleNamespace(_jvm=gateway.jvm)
    beside = path.with_name("_lock.jvm")
    with (
        lock._held_here(beside, fcntl.lockf),
        pytest.raises(RetryableError),
        lock._held_by(spark, beside),
    ):
        pass
    assert taken(path, spark)
    gateway.close()


def test_what_went_wrong_is_not_hidden_by_a_jvm_that_died_with_the_lock(tmp_path, jvm):
    path, (port, process) = tmp_path / "_lock", jvm
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    with (
        pytest.raises(ValueError, match="the first problem"),
        publisher(path, SimpleNamespace(_jvm=gateway.jvm)),
    ):
        process.kill()
        process.wait()
        raise ValueError("the first problem")
    assert taken(path)
    gateway.close()
