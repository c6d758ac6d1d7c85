"""The wheel of the installed Strandline: the one it was installed from, or built from sources."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from urllib.request import url2pathname

from strandline.errors import InputError
from strandline.packing.uv import PLACE, Uv

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
    raise InputError(PLACE, problem, "give the wheel of this version with --wheel FILE")


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
