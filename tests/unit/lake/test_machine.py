"""Who else may log in on a machine."""

from __future__ import annotations

import os
import pwd

import pytest

from strandline.lake.sessions.machine import others_who_may_log_in


def account(name, uid, shell):
    return pwd.struct_passwd((name, "x", uid, uid, "", "/", shell))


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
    monkeypatch.setattr(os, "getuid", lambda: 999)
    assert bool(others_who_may_log_in([account(name, uid, shell)])) is may


def test_ones_own_account_is_no_other(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert others_who_may_log_in([account("ann", 1000, "/bin/bash")]) == []
