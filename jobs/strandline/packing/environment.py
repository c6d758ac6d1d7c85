"""A virtual environment as one file, which Spark unpacks beside each executor.

uv can make environments that work in any folder (`--relocatable`). venv-pack converts any
environment, but for one made by uv `bin/python` would point to a missing file.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import tarfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from strandline.packing.uv import Uv

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
