"""A client of Sail asks for a setting once, and again once it has changed one."""

from __future__ import annotations

from types import SimpleNamespace

from pyspark.sql.connect.conf import RuntimeConf

from strandline.lake.sessions.remote import keep_settings


class Server:
    """Keeps settings, and counts how often it is asked."""

    def __init__(self):
        self.settings, self.asked = {"zone": "UTC"}, 0

    def config(self, operation):
        """Answer as the server's RPC does."""
        self.asked += 1
        kind = operation.WhichOneof("op_type")
        if kind == "set":
            self.settings |= {pair.key: pair.value for pair in operation.set.pairs}
        elif kind == "unset":
            for key in operation.unset.keys:
                self.settings.pop(key, None)
        keys = getattr(operation, kind).keys if kind == "get" else ()
        return SimpleNamespace(pairs=[(key, self.settings[key]) for key in keys], warnings=[])


def test_a_setting_is_asked_for_once_until_one_is_changed_or_unset():
    server = Server()
    keep_settings(SimpleNamespace(client=server))
    conf = RuntimeConf(server)
    assert [conf.get("zone") for _ in range(3)] == ["UTC"] * 3
    assert server.asked == 1
    conf.set("zone", "CET")
    conf.set("rows", "1")
    assert server.asked == 3
    assert [conf.get("zone"), conf.get("rows"), conf.get("zone")] == ["CET", "1", "CET"]
    assert server.asked == 5
    conf.unset("rows")
    server.settings["rows"] = "of the server"
    assert conf.get("rows") == "of the server"
