"""The accounts that may log in on this machine."""

from __future__ import annotations

import os
import pwd
from pathlib import PurePath

_FIRST_OF_PEOPLE, _NOBODY = 1000, 65534
_NO_LOGIN = {"nologin", "false", "sync", "shutdown", "halt"}


def others_who_may_log_in() -> list[str]:
    """The names of other accounts of people, or with a login shell, without root."""
    mine = {0, os.getuid(), _NOBODY}
    return [one.pw_name for one in pwd.getpwall() if one.pw_uid not in mine and _may_log_in(one)]


def _may_log_in(account: pwd.struct_passwd) -> bool:
    shell = PurePath(account.pw_shell or "/bin/sh").name
    return account.pw_uid >= _FIRST_OF_PEOPLE or shell not in _NO_LOGIN
