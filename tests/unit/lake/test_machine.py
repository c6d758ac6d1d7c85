"""Who else may log in on a machine."""

from __future__ import annotations

import os
import pwd

import pytest

from strandline.lake.sessions.machine import others_who_may_log_in


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
