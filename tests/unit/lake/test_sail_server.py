"""The process of Sail's server."""

from __future__ import annotations

from strandline.lake.sessions import embedded, sail_server


def test_ctrl_c_in_a_terminal_does_not_reach_the_server_which_the_command_ends(
    tmp_path, monkeypatch
):
    script = tmp_path / "server.py"
    script.write_text("import json, os\nprint(json.dumps({'session': os.getsid(0)}))\n", "utf-8")
    monkeypatch.setattr(sail_server, "__file__", str(script))
    server, said = embedded._started({}, tmp_path)
    embedded._end(server)
    assert said == {"session": server.pid}
