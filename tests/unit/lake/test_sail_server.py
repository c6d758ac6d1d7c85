"""The process of Sail's server."""

from __future__ import annotations

import pytest

from strandline.errors import RetryableError
from strandline.lake.sessions import embedded, remote, sail_server


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
