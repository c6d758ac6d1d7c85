"""The command as a user calls it: exit codes, what it says, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.cli import running, runs
from strandline.cli.main import main

pytestmark = pytest.mark.system

COMMAND = str(Path(sys.executable).with_name("strandline"))
PIPELINE = """
pipeline: clicks
source:
  table: landing/clicks
  arrival_date: day
  arrival_time: arrived_at
  event_time: happened_at
  key: [page]
watermark: {strategy: bounded_out_of_orderness, bound: 10m}
window: {tumbling: 1h}
allowed_lateness: 0s
aggregates:
  clicks: count(*)
quality:
  gaps: allow
  max_late_share: SHARE
"""


IN_WORKERS = """
pipeline: ranked
source:
  table: landing/clicks
  arrival_date: day
  arrival_time: arrived_at
  event_time: happened_at
watermark: {strategy: bounded_out_of_orderness, bound: 10m}
window: {tumbling: 1h}
process: ranking:rank
returns: {n: bigint}
quality:
  gaps: allow
  max_late_share: 0.5
"""
RANKING = """
def rank(key, window, records, watermark):
    return [{"n": len(records)}]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with pipelines and a lake: four clicks of a day, the last of them late."""
    home = tmp_path_factory.mktemp("home")
    (home / "pipelines").mkdir()
    (home / "pipelines" / "clicks.yaml").write_text(PIPELINE.replace("SHARE", "0.5"))
    (home / "pipelines" / "ranked.yaml").write_text(IN_WORKERS)
    (home / "pipelines" / "ranking.py").write_text(RANKING)
    broken = PIPELINE.replace("clicks", "broken").replace("10m", "10 minutes")
    (home / "pipelines" / "broken.yaml").write_text(broken)
    midnight = datetime(2024, 3, 1, tzinfo=UTC)
    times = [(9.2, 9.1), (9.5, 9.4), (12.1, 12.0), (12.2, 9.2)]
    rows = [
        {
            "arrived_at": midnight + timedelta(hours=arrived),
            "happened_at": midnight + timedelta(hours=happened),
            "page": "home",
            "day": midnight.date(),
        }
        for arrived, happened in times
    ]
    write_deltalake(
        str(home / "lake" / "landing" / "clicks"), pa.Table.from_pylist(rows), partition_by=["day"]
    )
    return home


@pytest.fixture
def strandline(home):
    """Calls the command in a folder of its own: nothing depends on where it is called from."""

    def call(*arguments, exit_code=0, **environment):
        places = {"STRANDLINE_PIPELINES": home / "pipelines", "STRANDLINE_LAKE": home / "lake"}
        places = {name: str(path) for name, path in places.items()}
        done = subprocess.run(
            [COMMAND, *arguments],
            cwd=home,
            env={**os.environ, **places, **environment},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == exit_code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


@pytest.fixture
def asked(home, monkeypatch, capsys):
    """Calls the command in this process, where it starts no engine: a start of Python is dearer."""
    monkeypatch.setenv("STRANDLINE_PIPELINES", str(home / "pipelines"))
    monkeypatch.setenv("STRANDLINE_LAKE", str(home / "lake"))
    for module in (running, runs):
        monkeypatch.setattr(module, "application", None)

    def call(*arguments, exit_code=0):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        done = capsys.readouterr()
        assert (ended.value.code or 0) == exit_code, done.out + done.err
        assert "Traceback" not in done.err
        return SimpleNamespace(stdout=done.out, stderr=done.err)

    return call


OF_ANOTHER_PROGRAM = {
    "SPARK_REMOTE": "sc://localhost:9",
    "SPARK_CONNECT_MODE_ENABLED": "1",
    "SPARK_API_MODE": "connect",
}
"""Variables that make any PySpark a client of a Connect server, which is not asked for here."""


def test_spark_and_its_workers_are_those_of_the_command_whatever_the_shell_has(home, tmp_path):
    """A shell that knows a wrong Python and somebody's server, and nothing else."""
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    done = subprocess.run(
        [
            *(COMMAND, "--pipelines", str(home / "pipelines")),
            *("--lake", str(home / "lake")),
            *("plan", "ranked", "--start", "2024-03-01", "--end", "2024-03-02", "--json"),
        ],
        cwd=tmp_path,
        env={
            "PYSPARK_PYTHON": str(other),
            "PATH": f"{tmp_path}:{os.defpath}",
            **OF_ANOTHER_PROGRAM,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["diff"]["windows"]["insert"] == 1


JVM = "org.apache.spark.deploy.SparkSubmit"


@pytest.fixture
def on_spark(home, tmp_path):
    """A run on Apache Spark, in a terminal session of its own, whose group Ctrl-C is sent to."""
    (tmp_path / "landing").symlink_to(home / "lake" / "landing")
    places = {"STRANDLINE_PIPELINES": str(home / "pipelines"), "STRANDLINE_LAKE": str(tmp_path)}
    driver = subprocess.Popen(
        [COMMAND, "advance", "clicks", "--engine", "spark", "--to", "2024-03-02"],
        env={**os.environ, **places},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # a shell's job in the background, as these tests may be, ignores it, and so do its children
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - so short
    )
    yield driver
    if driver.poll() is None:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def test_an_interruption_while_spark_starts_leaves_no_process_behind(on_spark):
    started: list[psutil.Process] = []
    is_starting = False
    while not is_starting:
        assert on_spark.poll() is None, on_spark.stdout.read()
        with suppress(psutil.NoSuchProcess):
            started = psutil.Process(on_spark.pid).children(recursive=True)
            is_starting = any(JVM in process.cmdline() for process in started)
        time.sleep(0.02)
    os.killpg(on_spark.pid, signal.SIGINT)
    message, _ = on_spark.communicate(timeout=60)
    assert on_spark.returncode == 130
    assert "interrupted; running it again is safe" in message
    assert psutil.wait_procs(started, timeout=30)[1] == []


def test_an_interruption_while_spark_runs_is_one_line(on_spark):
    assert any("observe" in line for line in on_spark.stdout)
    started = psutil.Process(on_spark.pid).children(recursive=True)
    os.killpg(on_spark.pid, signal.SIGINT)
    message, _ = on_spark.communicate(timeout=60)
    assert on_spark.returncode == 130, message
    assert "Traceback" not in message
    assert message.endswith("interrupted; running it again is safe\n")
    assert psutil.wait_procs(started, timeout=30)[1] == []


def said(done) -> str:
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("backfill", "nope", "--start", "2024-03-01", "--end", "2024-03-02"), "no such pipeline"),
        (("backfill", "clicks", "--start", "2024-03-02", "--end", "2024-03-02"), "is not before"),
        (("backfill", "clicks", "--start", "2024-03-32", "--end", "2024-04-02"), "--start"),
        (("advance", "clicks", "--to", "yesterday"), "--to"),
        (("advance", "broken", "--to", "2024-03-02"), "watermark.bound"),
        (("status", "clicks"), "has no runs yet"),
        (("runs", "clicks"), "has no runs yet"),
        (("runs", "drop", "clicks", "nope"), "--reason"),
        (("runs", "drop", "clicks", "nope", "--reason", "a mistake"), "no such run"),
        (("backfill", "clicks", "--start", "2024-03-01"), "--end"),
    ],
)
def test_wrong_input_is_said_in_one_message_without_starting_an_engine(asked, arguments, problem):
    assert problem in said(asked(*arguments, exit_code=2))


def test_wrong_input_is_an_exit_code_and_json_for_machines(strandline, home):
    lake = str(home / "no-lake-here")
    done = strandline(
        "advance", "clicks", "--to", "2024-03-02", "--json", "--lake", lake, exit_code=2
    )
    error = json.loads(done.stdout)["error"]
    assert (error["kind"], error["place"]) == ("NoTableError", "clicks: source.table")
    assert "no Delta table at landing/clicks" in error["problem"]
    assert error["way_out"]
    assert "Spark" not in done.stderr
    assert not Path(lake).exists()


def test_validate_says_what_is_wrong_with_each_file(asked):
    results = json.loads(asked("validate", "--json", exit_code=2).stdout)
    assert [result["valid"] for result in results] == [False, True, True]
    assert "'10 minutes'" in results[0]["problem"]
    asked("validate", "clicks")


def test_a_master_that_does_not_answer_is_to_be_tried_again_soon(strandline):
    began = time.monotonic()
    done = strandline(
        *("advance", "clicks", "--to", "2024-03-02", "--master", "spark://127.0.0.1:9"),
        exit_code=4,
    )
    assert "does not answer" in said(done)
    assert time.monotonic() - began < 60


def test_a_run_is_rejected_then_mended_then_reported(strandline, asked, home):
    spec = home / "pipelines" / "clicks.yaml"
    spec.write_text(PIPELINE.replace("SHARE", "0.1"))
    rejected = strandline(
        *("advance", "clicks", "--to", "2024-03-02T06:00:00Z", "--engine", "sail"), exit_code=3
    )
    assert "expect_late_share_to_be_at_most" in said(rejected)
    spec.write_text(PIPELINE.replace("SHARE", "0.5"))

    done = strandline(
        *("backfill", "clicks", "--start", "2024-03-01", "--end", "2024-03-02", "--json"),
        *("--engine", "sail"),
        *("--reason", "the share was too strict", "--requested-by", "ann"),
    )
    outcome = json.loads(done.stdout)
    assert outcome["status"] == "published"
    assert outcome["diff"]["windows"] == {"insert": 1, "update": 0, "delete": 0}
    assert outcome["slots"] == {"closed": 1, "open": 1}
    (row,) = DeltaTable(str(home / "lake" / "clicks" / "windows")).to_pyarrow_table().to_pylist()
    assert (row["page"], row["clicks"], row["state"]) == ("home", 2, "closed")

    again = ("backfill", "clicks", "--start", "2024-03-01", "--end", "2024-03-02")
    repeated = strandline(*again)
    assert "Spark" not in repeated.stderr
    assert f"run {outcome['run_id']} has published exactly this" in said(repeated)
    asked(*again, "--force", "--repeat-only", exit_code=2)
    asked(*again, "--as-of", "2024-03-02", "--repeat-only", exit_code=5)

    status = json.loads(asked("status", "clicks", "--json").stdout)
    assert status["records"]["late"] == status["quarantine"]["late"] == 1
    listed = json.loads(asked("runs", "clicks", "--json").stdout)
    assert [run["status"] for run in listed] == ["repeated", "published", "rejected"]
    shown = json.loads(asked("runs", "show", "clicks", outcome["run_id"], "--json").stdout)
    assert (shown["reason"], shown["requested_by"]) == ("the share was too strict", "ann")
    assert "published" in said(asked("runs", "clicks"))
    assert "closed" in said(asked("status", "clicks"))

    written = json.loads(asked("report", "clicks", "--json").stdout)
    assert (home / "lake" / "clicks" / "_reports" / "report.html").is_file()
    assert any("report.html" in str(value) for value in written.values())
