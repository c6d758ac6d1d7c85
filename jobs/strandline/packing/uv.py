"""The program uv, which builds wheels and environments."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from strandline.errors import InputError, RetryableError

PLACE = "strandline package"
_AWAY = re.compile(
    "error sending request|dns error|timed out|[Cc]onnect|[Ff]ailed to fetch|network was disabled"
)
"""Texts in uv's output if the package index does not answer."""


@dataclass(frozen=True)
class Uv:
    """The installed uv, with the environment variables of its processes (mirrors, proxies)."""

    executable: str
    environment: Mapping[str, str] = field(repr=False)

    @classmethod
    def installed(cls, environment: Mapping[str, str]) -> Uv:
        """The uv in this Python's environment.

        Raises:
            InputError: it is not installed.
        """
        try:
            from uv import find_uv_bin  # noqa: PLC0415 - of an extra

            return cls(find_uv_bin(), environment)
        except (ModuleNotFoundError, FileNotFoundError):
            raise InputError(PLACE, "uv is not installed", "install strandline[package]") from None

    def run(self, *arguments: str | Path) -> str:
        """The output of a uv command.

        Raises:
            RetryableError: the package index does not answer.
            InputError: uv fails for another reason.
        """
        done = subprocess.run(
            [self.executable, *arguments],
            env=dict(self.environment),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return done.stdout
        problem = f"uv {arguments[0]} failed:\n{done.stderr.strip()}\n"
        if _AWAY.search(done.stderr):
            way_out = "go online, or name a mirror with UV_DEFAULT_INDEX"
            raise RetryableError(PLACE, problem, way_out)
        raise InputError(PLACE, problem, "solve the problem that uv names")
