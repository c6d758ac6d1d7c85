"""Servers on this machine that keep what they are sent: one of mail, one of webhooks."""

from __future__ import annotations

import email
import email.policy
import json
import socketserver
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


class _Mail(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs that neither encrypts nor signs in."""

    def handle(self):
        self._say("220 here")
        for line in self.rfile:
            word = line.split(maxsplit=1)[0].upper() if line.split() else b""
            if word == b"DATA":
                self._say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                said = b"".join(line.removeprefix(b".") for line in lines)
                self.server.got.append(email.message_from_bytes(said, policy=email.policy.default))
            self._say("221 bye" if word == b"QUIT" else "250 ok")
            if word == b"QUIT":
                return

    def _say(self, text):
        self.wfile.write(f"{text}\r\n".encode())


class _Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *args):
        """Say nothing."""


@contextmanager
def _served(server):
    server.got, server.status = [], 200
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def mail_server():
    """A server of mail; `got` has the messages."""
    socketserver.ThreadingTCPServer.daemon_threads = True
    return _served(socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mail))


def webhook_server():
    """A server of webhooks; `got` has path, headers and body of each, `status` is its answer."""
    return _served(HTTPServer(("127.0.0.1", 0), _Hook))
