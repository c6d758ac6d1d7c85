"""The wheel, installed elsewhere: nothing of this repository's folder is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

PROJECT = Path(__file__).parents[2]
_SOURCES = ["jobs", "plugins", "pyproject.toml", "README.md", "LICENSE"]
_BUILD = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"
_INSTALL = ("pip", "install", "--quiet", "--offline", "--no-deps")
TWO_LINES = """from strandline_airflow import strandline_dags

strandline_dags("mine/", globals())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built of a copy: a build leaves folders beside its sources."""
    copy, into = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for name in _SOURCES:
        source = PROJECT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, copy / name, ignore=ignored)
        else:
            shutil.copy(source, copy)
    subprocess.run(
        [sys.executable, "-c", _BUILD, str(into)], cwd=copy, check=True, capture_output=True
    )
    return next(into.glob("strandline-*.whl"))


@pytest.fixture(scope="module")
def elsewhere(wheel, tmp_path_factory):
    """A virtual environment with the wheel, and with the locked packages but for the project."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "venv", symlinks=True)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    others = folder / "locked"
    others.mkdir()
    for place in Path(sysconfig.get_path("purelib")).iterdir():
        if not place.name.startswith(("strandline", "__editable__", "_editable")):
            (others / place.name).symlink_to(place)
    (own / "locked.pth").write_text(f"{others}\n")
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    subprocess.run(
        [uv, *_INSTALL, "--python", str(folder / "venv" / "bin" / "python"), str(wheel)],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def said(elsewhere, tmp_path):
    """Gives what a program of that environment says, begun in a strange folder."""
    home = tmp_path / "airflow"
    home.mkdir()

    def said(program, *arguments, expected=0):
        environment = {
            "PATH": os.defpath,
            "HOME": str(tmp_path),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "STRANDLINE_LAKE": str(tmp_path / "lake"),
        }
        done = subprocess.run(
            [str(elsewhere / "venv" / "bin" / program), *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == expected, done.stderr[-3_000:]
        return done.stdout + done.stderr

    return said


def test_the_command_of_the_wheel_knows_its_version_and_validates(said, tmp_path):
    (tmp_path / "pipelines").mkdir()
    shutil.copy(PROJECT / "pipelines" / "flights.yaml", tmp_path / "pipelines")
    assert said("strandline", "--version").startswith("strandline 0.2")
    assert "flights" in said("strandline", "validate", "pipelines/flights.yaml")
    state = said("strandline", "--pipelines", "pipelines", "status", expected=2)
    assert "flights: has no runs yet" in state


def test_airflow_finds_provider_and_pages_and_makes_the_dags_of_two_lines_in_a_strange_folder(
    said, tmp_path
):
    """In one process, which loads Airflow once."""
    dags = tmp_path / "dags"
    (dags / "mine").mkdir(parents=True)
    shutil.copy(PROJECT / "pipelines" / "flights.yaml", dags / "mine")
    (dags / "two_lines.py").write_text(TWO_LINES)
    script = (
        "import json\n"
        "from pathlib import Path\n"
        "from airflow import plugins_manager\n"
        "from airflow.dag_processing.dagbag import DagBag\n"
        "from airflow.providers_manager import ProvidersManager\n"
        "plugins_manager.get_fastapi_plugins()\n"
        "assert not plugins_manager.get_import_errors(), plugins_manager.get_import_errors()\n"
        "assert 'strandline' in {one['name'] for one in plugins_manager.get_plugin_info()}\n"
        "manager = ProvidersManager()\n"
        "assert 'strandline' in manager.providers\n"
        "assert 'strandline' in manager.hooks\n"
        f"bag = DagBag({str(dags)!r})\n"
        "assert not bag.import_errors, bag.import_errors\n"
        "import strandline_airflow.page.app as page\n"
        "templates = len([*Path(page.__file__).parent.rglob('*.j2')])\n"
        "print(json.dumps([templates, sorted(bag.dags)]))\n"
    )
    templates, found = json.loads(said("python", "-c", script).splitlines()[-1])
    assert found == [
        "strandline_daily_flights",
        "strandline_maintain",
        "strandline_report",
        "strandline_reprocess",
    ]
    there = [*(PROJECT / "plugins" / "strandline_airflow").rglob("*.j2")]
    assert templates == len(there) > 0
