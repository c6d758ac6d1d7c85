"""The builds of uv for a cluster: the wheel of Strandline, and the environment as one file.

uv can make environments that work in any folder (`--relocatable`). venv-pack converts any
environment, but for one made by uv `bin/python` would point to a missing file.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from urllib.request import url2pathname

from strandline.errors import InputError, RetryableError

_PLACE = "strandline package"
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
            raise InputError(_PLACE, "uv is not installed", "install strandline[package]") from None

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
            raise RetryableError(_PLACE, problem, way_out)
        raise InputError(_PLACE, problem, "solve the problem that uv names")


_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")
_READ_BY_A_BUILD = ("jobs", "plugins", "pyproject.toml", "README.md", "LICENSE")
_SOME_DAY = 1_704_067_200
"""The time, in seconds since 1970, of every file in a wheel, so that builds are reproducible."""


def origin(given: Path | None = None) -> Path:
    """The origin of the wheel: a wheel file, or a folder of sources.

    Args:
        given: the user's choice; None: the origin of the installed Strandline (PEP 610).

    Raises:
        InputError: the origin is unknown, or does not exist any more.
    """
    found = given or _installed_from()
    is_wheel = found is not None and found.suffix == ".whl" and found.is_file()
    if found is not None and (is_wheel or (found / "pyproject.toml").is_file()):
        return found
    problem = (
        "this installation does not say which wheel it is of"
        if found is None
        else f"there is no wheel, and no folder of sources, at {found}"
    )
    raise InputError(_PLACE, problem, "give the wheel of this version with --wheel FILE")


def _installed_from() -> Path | None:
    direct_url = distribution("strandline").read_text("direct_url.json")
    parts = urlsplit(json.loads(direct_url)["url"]) if direct_url else None
    return Path(url2pathname(parts.path)) if parts and parts.scheme == "file" else None


def wheel_of(place: Path, into: Path, uv: Uv) -> Path:
    """Copy a wheel into a folder, or build it there.

    Sources are copied before the build, since it leaves folders beside them in which Python would
    find the package a second time.

    Raises:
        InputError: the sources cannot be built.
        RetryableError: the build tools cannot be downloaded.
    """
    if place.is_file():
        return Path(shutil.copy(place, into))
    environment = {**uv.environment, "SOURCE_DATE_EPOCH": str(_SOME_DAY)}
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        for source in (place / name for name in _READ_BY_A_BUILD):
            if source.is_dir():
                shutil.copytree(source, copy / source.name, ignore=_LEFT_OUT)
            else:
                shutil.copy(source, copy)
        replace(uv, environment=environment).run("build", "--wheel", "--out-dir", into, copy)
    return next(into.glob("strandline-*.whl"))


_LEVEL = 4
"""The level of gzip: 200 MB in ten seconds; the best saves 5 % and takes four times as long."""
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Contents:
    """The contents of an environment.

    Attributes:
        wheel: the wheel of Strandline.
        requirements: further packages, such as imports of a pipeline's function.
        python: the folder with `bin/python3.x` on the workers; an environment contains no Python.
    """

    wheel: Path
    requirements: tuple[str, ...] = ()
    python: Path = Path(sys.base_prefix)

    @property
    def interpreter(self) -> Path:
        """The path of the Python that every worker must have, such as `/usr/bin/python3.11`."""
        return self.python / "bin" / _PYTHON

    @property
    def file_name(self) -> str:
        """The file's name, such as `strandline-0.2.0-python3.11-linux-x86_64.tar.gz`."""
        version = self.wheel.name.split("-")[1]
        return f"strandline-{version}-{_PYTHON}-{sysconfig.get_platform()}.tar.gz"


def versions_here(uv: Uv) -> str:
    """The versions of this environment's packages as constraints, one line each."""
    asked = ("--exclude-editable", "--exclude", "strandline")
    return uv.run("pip", "freeze", "--python", sys.executable, *asked)


def pack(contents: Contents, versions: str, target: Path, uv: Uv) -> str:
    """Make an environment and write it as one file.

    Args:
        contents: its contents.
        versions: constraints from `versions_here`.
        target: the file; it appears only when it is complete.
        uv: the program that makes the environment.

    Returns:
        The installed packages, one line each.

    Raises:
        InputError: a package is not available in its version.
        RetryableError: the package index does not answer.
    """
    with TemporaryDirectory() as folder:
        constraints, made = Path(folder, "constraints.txt"), Path(folder, "environment")
        constraints.write_text(versions)
        uv.run("venv", "--relocatable", "--python", sys.executable, made)
        python = made / "bin" / "python"
        which = ("--python", python, "--constraint", constraints)
        uv.run("pip", "install", *which, contents.wheel, *contents.requirements)
        holds = uv.run("pip", "freeze", "--python", python, "--exclude", "strandline")
        _lead_to(contents, made)
        half = target.with_name(f".{target.name}.part")
        _write(made, half)
        half.replace(target)
    return holds


def _lead_to(contents: Contents, made: Path) -> None:
    """Point an environment to the workers' Python, which need not exist on this machine."""
    python, config = made / "bin" / "python", made / "pyvenv.cfg"
    python.unlink()
    python.symlink_to(contents.interpreter)
    home = f"home = {contents.interpreter.parent}"
    config.write_text(re.sub("^home = .*", home, config.read_text(), flags=re.MULTILINE))


def _write(made: Path, target: Path) -> None:
    with tarfile.open(target, "w:gz", compresslevel=_LEVEL) as tar:
        tar.add(made, ".", filter=_of_nobody)


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """An archive entry without this machine's user; None for files that Python generates."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if entry.name.endswith("__pycache__") else entry
