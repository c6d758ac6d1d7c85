"""The process of Sail's server, which other users of the machine cannot reach.

Sail listens on a port without authentication, so any other user of the machine could run code as
this user. Therefore this process moves into a network namespace of its own, and forwards the bytes
of the port to a socket in a private folder.

`python sail_server.py FOLDER`, with a private FOLDER, prints a line of JSON: `{"socket": PATH}`, or
`{"closed": REASON}` if the namespace cannot be created. It ends when its input ends. Without a
folder it serves an open port, and prints `{"port": NUMBER}`.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import pwd
import socket
import struct
import sys
from pathlib import Path, PurePath
from threading import Thread
from typing import Any

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _IS_UP = 0x8913, 0x8914, 0x1
_CHUNK = 1 << 18


def leave_network() -> None:
    """Move this process into a new network namespace; it must have a single thread.

    Raises:
        OSError: the system does not allow it.
    """
    user, group = os.getuid(), os.getgid()
    try:
        _unshare(_NEW_NET)
    except OSError:  # whoever is not root needs a user namespace of their own for it
        _unshare(_NEW_USER | _NEW_NET)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _bring_up("lo")


def _unshare(what: int) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    if system.unshare(what) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _bring_up(interface: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        request = array.array("b", struct.pack("16sH14s", interface.encode(), 0, b""))
        fcntl.ioctl(asked, _GET_FLAGS, request)
        name, flags, rest = struct.unpack("16sH14s", request.tobytes())
        fcntl.ioctl(asked, _SET_FLAGS, struct.pack("16sH14s", name, flags | _IS_UP, rest))


def serve() -> tuple[Any, tuple[str, int]]:
    """Start Sail on a free port; the server and its address.

    The server ends when no variable refers to it any more.
    """
    from pysail.spark import SparkConnectServer  # noqa: PLC0415

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    address = server.listening_address
    if address is None:
        msg = "Sail has not started to listen"
        raise OSError(msg)
    return server, address


def hand_on(listening: socket.socket, address: tuple[str, int]) -> None:
    """Forward connections of a socket to Sail."""
    while True:
        client, _ = listening.accept()
        try:
            server = socket.create_connection(address)
        except OSError:
            client.close()
            continue
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, target in ((client, server), (server, client)):
            Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while received := source.recv(_CHUNK):
            target.sendall(received)
    except OSError:
        pass  # one of both has gone: so does the other
    finally:
        for one in (source, target):
            one.close()


def main(folder: str | None) -> None:
    """Serve until the input ends, which is when the parent process ends."""
    if folder is None:
        server, (_, port) = serve()
        _say(port=port)
    else:
        try:
            leave_network()
        except OSError as error:
            _say(closed=str(error.strerror or error))
            return
        path = str(Path(folder) / "sail")
        server, address = serve()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(path)
        listening.listen()
        Thread(target=hand_on, args=(listening, address), daemon=True).start()
        _say(socket=path)
    sys.stdin.buffer.read()
    del server
    os._exit(0)  # whatever still runs was asked by a process that is gone


def _say(**what: str | int) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


_FIRST_OF_PEOPLE, _NOBODY = 1000, 65534
_NO_LOGIN = {"nologin", "false", "sync", "shutdown", "halt"}


def others_who_may_log_in() -> list[str]:
    """The names of other accounts of people, or with a login shell, without root."""
    mine = {0, os.getuid(), _NOBODY}
    return [one.pw_name for one in pwd.getpwall() if one.pw_uid not in mine and _may_log_in(one)]


def _may_log_in(account: pwd.struct_passwd) -> bool:
    shell = PurePath(account.pw_shell or "/bin/sh").name
    return account.pw_uid >= _FIRST_OF_PEOPLE or shell not in _NO_LOGIN


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
