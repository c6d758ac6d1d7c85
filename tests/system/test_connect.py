"""Runs behind Spark Connect: a server that somebody else has started, and one that will not do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from connect_servers import connect_server
from kills import Home
from lakes import a_week, land

pytestmark = [pytest.mark.system, pytest.mark.deep]

COMMAND = str(Path(sys.executable).with_name("strandline"))
GOLDENS = Path(__file__).parents[1] / "golden" / "flink"
SOME = 6
DEEP = "pub_joins_010_interval"
"""A golden whose plan has more levels than a client's parser of plans reads."""
ADVANCE = ("advance", "--to", "2024-03-03")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with connect_server(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    home.write_spec({"spark": {}})
    land(home.folder / "lake", a_week(days=2))
    return home


def test_a_run_behind_a_server_leaves_what_one_on_this_machine_leaves(
    server, home, tmp_path_factory, monkeypatch
):
    here = home.copy(tmp_path_factory.mktemp("here"))
    here.run_on_sail(ADVANCE)
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
    home.run((*ADVANCE, "--remote", server.remote))
    assert home.content() == here.content()
    assert {entry.driver.engine for entry in home.ledger()} == {"connect"}
    assert server.token not in home.said + "".join(map(str, home.ledger()))
    assert not list((home.folder / "lake").glob("_seen-by-*"))


def test_some_goldens_are_answered_behind_a_server(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
    seeded = json.loads((GOLDENS / "seed_00.json").read_text("utf-8"))
    joins = [case for path in GOLDENS.glob("joins_*") for case in json.loads(path.read_text())]
    deep = [case for case in joins if case["scenario"]["name"] == DEEP]
    (tmp_path / "some.json").write_text(json.dumps([*seeded[:: len(seeded) // SOME], *deep]))
    done = subprocess.run(
        [COMMAND, "conformance", tmp_path / "some.json", "--remote", server.remote, "--json"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["agreed"] > SOME


@pytest.mark.parametrize("token", ["", "another"])
def test_a_wrong_token_is_wrong_input_and_writes_nothing(server, home, monkeypatch, token):
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", token)
    assert home.start((*ADVANCE, "--remote", server.remote)).wait(timeout=120) == 2
    assert "the server wants a token, or another one" in home.said
    assert not home.root.exists()


def test_a_setting_that_a_session_cannot_set_is_refused_by_its_name(server, home, monkeypatch):
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
    home.write_spec({"spark": {"spark.executor.memory": "2g"}})
    assert home.start((*ADVANCE, "--remote", server.remote)).wait(timeout=120) == 2
    assert "a session cannot set spark.executor.memory" in home.said
    assert not home.root.exists()


def test_a_server_that_is_killed_ends_the_run_in_minutes_to_be_tried_again(tmp_path, monkeypatch):
    home = Home(tmp_path)
    home.write_spec({"spark": {}})
    land(home.folder / "lake", a_week(days=2))
    with connect_server(tmp_path) as server:
        monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
        run = home.start((*ADVANCE, "--remote", server.remote))
        while "rebuild" not in home.said:
            assert run.poll() is None, home.said
            time.sleep(0.01)
        (jvm,) = (one for one in psutil.Process().children(recursive=True) if one.name() == "java")
        jvm.kill()
        assert run.wait(timeout=600) == 4
    assert "the server answers no more, or was restarted; run it again" in home.said
    assert home.ledger()[-1].step == "failed"


def test_a_server_without_delta_is_refused(home, tmp_path_factory, monkeypatch):
    with connect_server(tmp_path_factory.mktemp("server"), delta=False) as server:
        monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
        assert home.start((*ADVANCE, "--remote", server.remote)).wait(timeout=120) == 2
    assert "the server has no Delta Lake" in home.said
    assert not home.root.exists()
