"""A virtual environment as one file, which Spark unpacks beside each executor.

uv makes an environment that may lie anywhere (`--relocatable`). venv-pack does the same to any
environment, but leads `bin/python` of one made by uv to a file that is not there.
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
"""Of gzip: 200 MB in ten seconds; the best level saves a twentieth and takes four times as long."""
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Contents:
    """What an environment is made of.

    Attributes:
        wheel: of Strandline.
        requirements: further packages, such as those that a function of a pipeline imports.
        python: the folder that holds `bin/python3.x` on the workers; an environment holds no
            Python of its own.
    """

    wheel: Path
    requirements: tuple[str, ...] = ()
    python: Path = Path(sys.base_prefix)

    @property
    def interpreter(self) -> Path:
        """The Python that every worker must have, such as `/usr/bin/python3.11`."""
        return self.python / "bin" / _PYTHON

    @property
    def file_name(self) -> str:
        """Such as `strandline-0.2.0-python3.11-linux-x86_64.tar.gz`."""
        version = self.wheel.name.split("-")[1]
        return f"strandline-{version}-{_PYTHON}-{sysconfig.get_platform()}.tar.gz"


def versions_here(uv: Uv) -> str:
    """The packages of this environment, a line each, as constraints: a driver has no others."""
    asked = ("--exclude-editable", "--exclude", "strandline")
    return uv.run("pip", "freeze", "--python", sys.executable, *asked)


def pack(contents: Contents, versions: str, target: Path, uv: Uv) -> str:
    """Make an environment and write it as one file.

    Args:
        contents: of it.
        versions: constraints, as `versions_here` gives them.
        target: a file; a reader finds all of it or nothing.
        uv: what makes it.

    Returns:
        What it holds, a line a package.

    Raises:
        InputError: some package is not to be had in these versions.
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
    """Have an environment begin the workers' Python, which need not be there on this machine."""
    python, said = made / "bin" / "python", made / "pyvenv.cfg"
    python.unlink()
    python.symlink_to(contents.interpreter)
    home = f"home = {contents.interpreter.parent}"
    said.write_text(re.sub("^home = .*", home, said.read_text(), flags=re.MULTILINE))


def _write(made: Path, target: Path) -> None:
    with tarfile.open(target, "w:gz", compresslevel=_LEVEL) as tar:
        tar.add(made, ".", filter=_of_nobody)


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """An entry without the user of this machine; None: what Python makes by itself."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if entry.name.endswith("__pycache__") else entry
