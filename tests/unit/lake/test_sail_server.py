"""The process of Sail's server, and who else may log in on its machine."""

from __future__ import annotations

import os
import pwd

import pytest

from strandline.errors import RetryableError
from strandline.lake.sessions import embedded, remote, sail_server
from strandline.lake.sessions.sail_server import others_who_may_log_in


def test_ctrl_c_in_a_terminal_does_not_reach_the_server_which_the_command_ends(
    tmp_path, monkeypatch
):
    script = tmp_path / "server.py"
    script.write_text("import json, os\nprint(json.dumps({'session': os.getsid(0)}))\n", "utf-8")
    monkeypatch.setattr(sail_server, "__file__", str(script))
    server, said = embedded._started({}, tmp_path)
    embedded._end(server)
    assert said == {"session": server.pid}


def test_a_server_that_does_not_answer_is_not_awaited_for_ten_minutes(tmp_path, monkeypatch):
    monkeypatch.setenv(remote.CLIENT_MODE, "1")
    monkeypatch.setattr(remote, "_SECONDS_TO_START", 0.2)
    script = tmp_path / "server.py"
    script.write_text(
        'import sys\nprint(\'{"socket": "/nowhere"}\', flush=True)\nsys.stdin.read()\n'
    )
    monkeypatch.setattr(sail_server, "__file__", str(script))
    with pytest.raises(RetryableError, match="its server accepts no connection within 0 s"):
        embedded.start_embedded()


def account(name, uid, shell):
    return pwd.struct_passwd((name, "x", uid, uid, "", "/", shell))


def on_machine(only, monkeypatch, own):
    monkeypatch.setattr(pwd, "getpwall", lambda: [only])
    monkeypatch.setattr(os, "getuid", lambda: own)


@pytest.mark.parametrize(
    ("name", "uid", "shell", "may"),
    [
        ("root", 0, "/bin/bash", False),
        ("ann", 1000, "/bin/bash", True),
        ("bob", 1001, "/usr/sbin/nologin", True),
        ("postgres", 101, "/bin/bash", True),
        ("old", 102, "", True),
        ("daemon", 1, "/usr/sbin/nologin", False),
        ("sync", 4, "/bin/sync", False),
        ("nobody", 65534, "/usr/sbin/nologin", False),
    ],
)
def test_people_and_whoever_has_a_login_shell_may_log_in(name, uid, shell, may, monkeypatch):
    on_machine(account(name, uid, shell), monkeypatch, own=999)
    assert bool(others_who_may_log_in()) is may


def test_ones_own_account_is_no_other(monkeypatch):
    on_machine(account("ann", 1000, "/bin/bash"), monkeypatch, own=1000)
    assert others_who_may_log_in() == []
