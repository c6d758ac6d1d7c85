"""What `strandline package` makes, on a cluster whose workers have Java and a bare Python alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import SMALL, cluster_of_plain_spark
from kills import COMMAND, Home
from lakes import SPEC, a_week, land

pytestmark = [pytest.mark.system, pytest.mark.adopt]

BACKFILL = ("backfill", "--start", "2024-03-01", "--end", "2024-03-02")
ONLY_IN_THE_ARCHIVE = "roman"
FUNCTION = """
def counted(key, window, records, watermark):
    import sys

    import roman

    return [{"many": roman.toRoman(len(records["amount"])), "python": sys.prefix}]
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The folder of the package, and what the command said as JSON."""
    folder = tmp_path_factory.mktemp("packed") / "cluster"
    return folder, made(folder)


def made(folder):
    command = (COMMAND, "package", "--to", folder, "--with", ONLY_IN_THE_ARCHIVE, "--json")
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


@pytest.fixture
def home(packed, tmp_path, monkeypatch):
    """A pipeline whose function wants what neither the driver nor a worker's own Python has."""
    home = Home(tmp_path)
    (home.folder / "meters.py").write_text(FUNCTION)
    home.write_spec(
        {
            "window": {"session": "20m"},
            "trigger": {"continuous": "15m", "purging": True},
            "firings": True,
            "process": "meters:counted",
            "returns": {"many": "string", "python": "string"},
            "spark": {**SPEC["spark"], **SMALL, **packed[1]["spark"]},
        }
    )
    land(home.folder / "lake", a_week(days=2))
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/python")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    return home


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with cluster_of_plain_spark(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def require_workers_of_the_archive(home: Home) -> None:
    firings = home.content()["firings"]
    assert {Path(row["python"]).name for row in firings} == {"environment"}
    assert {"I", "II", "III"} & {row["many"] for row in firings}


def test_the_command_runs_on_workers_whose_python_comes_from_the_archive(home, cluster):
    home.run((*BACKFILL, "--master", cluster.master))
    require_workers_of_the_archive(home)


def test_spark_submit_runs_the_packed_entry_point_with_the_packed_python_and_jars(
    home, cluster, packed, monkeypatch
):
    monkeypatch.delenv("PYSPARK_PYTHON")  # with which its shell script looks for Spark
    folder, said = packed
    settings = {**said["spark"], **SMALL, "spark.pyspark.driver.python": sys.executable}
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("spark-submit"), "--master", cluster.master),
            *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
            *("--jars", ",".join(str(jar) for jar in (folder / "jars").iterdir())),
            *(folder / "strandline_job.py", "--pipelines", home.folder),
            *("--lake", home.folder / "lake", BACKFILL[0], "meter", *BACKFILL[1:]),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    require_workers_of_the_archive(home)


def test_a_package_is_made_once_and_mended_where_a_piece_has_changed(packed):
    folder, first = packed
    assert len(first["made"]) == len(first["pieces"]) > 10
    assert made(folder)["made"] == []
    (folder / "jars" / Path(first["pieces"][-1]["file"]).name).write_bytes(b"half")
    (archive,) = folder.glob("*.tar.gz")
    archive.write_bytes(b"half")
    again = made(folder)
    assert {Path(one["file"]).name for one in again["pieces"]} == {
        *(path.name for path in folder.rglob("*") if path.is_file() and path.name != "package.json")
    }
    jar, environment = again["made"][-1], again["made"][0]
    assert len(again["made"]) == 2
    assert environment == archive.name
    assert archive.stat().st_size > 10_000_000
    assert jar == first["pieces"][-1]["file"]
