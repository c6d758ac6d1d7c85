"""`strandline package`: what it refuses. That its pieces work on a cluster: `make test-adopt`."""

from __future__ import annotations

import json
import os
import sys
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from strandline.cli.main import app
from strandline.errors import InputError, RetryableError
from strandline.packing import builds
from strandline.packing.builds import Contents, Uv


def uv_that_says(folder: Path, text: str) -> Uv:
    program = folder / "uv"
    program.write_text(f"#!/bin/sh\necho '{text}' >&2\nexit 1\n")
    program.chmod(0o755)
    return Uv(str(program), {})


def test_without_uv_it_says_which_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "uv", None)
    with pytest.raises(InputError, match=r"install strandline\[package\]"):
        Uv.installed(os.environ)


def test_an_index_that_does_not_answer_may_later_and_a_refusal_stays_one(tmp_path):
    with pytest.raises(RetryableError, match="UV_DEFAULT_INDEX"):
        uv_that_says(tmp_path, "error: client error (Connect): dns error").run("pip", "install")
    with pytest.raises(InputError, match="No solution"):
        uv_that_says(tmp_path, "No solution found").run("pip", "install")


@pytest.mark.parametrize("where", [None, "gone.whl", "empty"])
def test_a_wheel_that_is_not_there_is_asked_for(tmp_path, monkeypatch, where):
    (tmp_path / "empty").mkdir()
    found = None if where is None else tmp_path / where
    monkeypatch.setattr(builds, "_installed_from", lambda: found)
    with pytest.raises(InputError, match="--wheel FILE"):
        builds.origin()


def test_an_installed_wheel_says_where_it_is_from(tmp_path, monkeypatch):
    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return json.dumps({"url": f"file://{tmp_path}/a%20folder/s.whl"})

    monkeypatch.setattr(builds, "distribution", lambda name: Installed())
    place = tmp_path / "a folder" / "s.whl"
    place.parent.mkdir()
    place.touch()
    assert builds.origin() == place


def test_a_python_of_the_workers_is_a_whole_path():
    done = CliRunner().invoke(app, ["package", "--worker-python", "usr"])
    assert isinstance(done.exception, InputError)
    assert "'usr' is not an absolute path" in str(done.exception)


def test_an_environment_begins_the_workers_python_and_shows_no_user_of_this_machine(tmp_path):
    made, target = tmp_path / "made", tmp_path / "made.tar.gz"
    (made / "bin").mkdir(parents=True)
    (made / "lib" / "__pycache__").mkdir(parents=True)
    (made / "bin" / "python").symlink_to(sys.executable)
    (made / "pyvenv.cfg").write_text("home = /here/bin\nrelocatable = true\n")
    contents = Contents(Path("strandline-9.9-py3-none-any.whl"), python=Path("/elsewhere"))
    builds._lead_to(contents, made)
    builds._write(made, target)
    with tarfile.open(target) as tar:
        entries = {entry.name: entry for entry in tar.getmembers()}
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert entries["./bin/python"].linkname == f"/elsewhere/bin/{version}"
    assert (made / "pyvenv.cfg").read_text() == "home = /elsewhere/bin\nrelocatable = true\n"
    assert {entry.uname for entry in entries.values()} == {""}
    assert "./lib/__pycache__" not in entries
    assert contents.file_name.startswith(f"strandline-9.9-{version}-")
