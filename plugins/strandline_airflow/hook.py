"""The connection type `strandline` of Airflow's form of connections."""

from __future__ import annotations

import subprocess
from typing import Any

from airflow.sdk import BaseHook, Connection

from strandline_airflow import settings
from strandline_airflow.provider import CONNECTION_TYPE
from strandline_airflow.settings import CONNECTION

_SECONDS_TO_ANSWER = 60


class StrandlineHook(BaseHook):
    """The hook of the connection type; Airflow's button "Test" calls `test_connection`."""

    conn_name_attr = "strandline_conn_id"
    default_conn_name = CONNECTION
    conn_type = CONNECTION_TYPE
    hook_name = "Strandline"

    def __init__(self, strandline_conn_id: str = CONNECTION) -> None:
        super().__init__()
        self.strandline_conn_id = strandline_conn_id

    def get_conn(self) -> Connection:
        """The connection itself: it names a program, so there is no client to open."""
        return self.get_connection(self.strandline_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Whether the executable runs, and its version or its error."""
        program: Any = self.get_conn().extra_dejson.get("executable") or settings.executable()
        try:
            done = subprocess.run(
                [str(program), "--version"],
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS_TO_ANSWER,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return False, str(error)
        return done.returncode == 0, (done.stdout or done.stderr).strip()
