"""A headless browser that is driven step by step: over two pipes, without a library for it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)


_WHERE = (
    "[document, document.querySelector('iframe')?.contentDocument].map((d) => d && "
    "[d.location.href, d.body?.innerText.slice(0, 400)].join(': '))"
)


@dataclass
class Browser:
    """One tab of Chromium."""

    to: Any
    answers: Any
    session: str = ""
    asked: list[str] = field(default_factory=list)
    _number: int = 0

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command of the DevTools protocol."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        self.to.write(json.dumps(command).encode() + b"\0")
        self.to.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        said = bytearray()
        while not said.endswith(b"\0"):
            one = self.answers.read(1)
            assert one, "the browser has ended"
            said += one
        answer = json.loads(said[:-1])
        if answer.get("method") == "Network.requestWillBeSent":
            self.asked.append(answer["params"]["request"]["url"])
        return answer

    def script(self, expression: str) -> Any:
        """What an expression gives in the page."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 20) -> None:
        """Wait until an expression is true."""
        end, asked = time.monotonic() + seconds, f"try {{ return !!({expression}) }} catch {{}}"
        while not self.script(f"(() => {{ {asked} }})()"):
            assert time.monotonic() < end, (expression, self.script(_WHERE))
            time.sleep(0.1)

    def open(self, url: str) -> None:
        """Go to an address, and wait until all of it is there."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def looks(self, *, width: int, height: int = 900, dark: bool = False) -> None:
        """The size of the screen, and whether people like it dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def picture(self, file: Path) -> None:
        """A picture of what is seen."""
        shot = self.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def a_browser(profile: Path) -> Iterator[Browser]:
    """A browser that reaches this machine and nothing else."""
    reads, writes = os.pipe(), os.pipe()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
               "--hide-scrollbars", "--no-proxy-server", f"--user-data-dir={profile}",
               "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]  # fmt: skip
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$0" "$@" 3<&{reads[0]} 4>&{writes[1]}', BROWSER, *options],
        pass_fds=(reads[0], writes[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(reads[0])
    os.close(writes[1])
    with os.fdopen(reads[1], "wb") as to, os.fdopen(writes[0], "rb") as answers:
        browser = Browser(to, answers)
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
            browser.session = attached["sessionId"]
            for domain in ("Page", "Network", "Runtime"):
                browser.call(f"{domain}.enable")
            yield browser
        finally:
            process.kill()  # it has nothing to finish, and may not answer any more
            process.wait()
