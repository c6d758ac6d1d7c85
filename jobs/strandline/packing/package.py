"""The building of a cluster's package: later calls rebuild only pieces that have changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import strandline
from strandline.errors import not_writable
from strandline.lake.jars import fetch, locked_jars, sha256_of, spark_jars_folder
from strandline.lake.local import WORKERS_PYTHON
from strandline.packing.environment import Contents, pack, versions_here
from strandline.packing.uv import Uv
from strandline.packing.wheel import wheel_of

_MANIFEST, _VERSIONS, _JARS = "package.json", "versions.txt", "jars"
_ENTRY = Path(strandline.__file__).parent / "cli" / "entry" / "strandline_job.py"
_FOLDER_OF_EXECUTORS = "environment"


@dataclass(frozen=True)
class Piece:
    """One file of a package.

    Attributes:
        what: `wheel`, `environment`, `versions`, `entry point` or `jar`.
        file: its path below the folder.
        bytes: its size.
        sha256: the hash of its content.
    """

    what: str
    file: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, what: str, path: Path, folder: Path) -> Piece:
        """The piece of a file."""
        return cls(what, str(path.relative_to(folder)), path.stat().st_size, sha256_of(path))


@dataclass(frozen=True)
class Package:
    """A complete package.

    Attributes:
        folder: the folder with its files.
        pieces: its files.
        python: the Python that every worker must have, such as `/usr/bin/python3.11`.
        made: the files that this call has made or replaced.
        spark: the Spark settings of runs that use it.
    """

    folder: Path
    pieces: tuple[Piece, ...]
    python: Path
    made: tuple[str, ...]
    spark: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """The package as a JSON document."""
        return {
            "folder": str(self.folder),
            "pieces": [asdict(piece) for piece in self.pieces],
            "python": str(self.python),
            "made": list(self.made),
            "spark": dict(self.spark),
        }


def package(
    folder: Path,
    contents: Contents,
    *,
    environment: Mapping[str, str],
    say: Callable[[str], None],
) -> Package:
    """Build, or update, the package of this Strandline in a folder.

    Args:
        folder: the folder; it is created if it does not exist.
        contents: the environment's contents; its `wheel` may be a folder of sources.
        environment: environment variables of uv, Ivy and Java (mirrors, proxies, JAVA_HOME).
        say: called with each step as it begins.

    Raises:
        InputError: a prerequisite is missing, or a file cannot be written.
        RetryableError: a package or a jar cannot be downloaded at present.
    """
    uv = Uv.installed(environment)
    spark_jars_folder()  # before anything is made
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = _read(folder)
        say("wheel")
        with TemporaryDirectory(dir=folder) as beside:
            built = wheel_of(contents.wheel, Path(beside), uv)
            contents = replace(contents, wheel=built.replace(folder / built.name))
        shutil.copy(_ENTRY, folder)
        versions = versions_here(uv)
        made_of = _sum_of(contents, versions)
        archive = folder / contents.file_name
        if before.get("made_of") != made_of or not _is_unchanged(archive, folder, before):
            say("environment")
            holds = pack(contents, versions, archive, uv)
            (folder / _VERSIONS).write_text(holds)
        say("jars")
        (folder / _JARS).mkdir(exist_ok=True)
        fetched = fetch(environment, folder / _JARS)
        return _finished(folder, contents, before, made_of, fetched)
    except OSError as error:
        raise not_writable(str(error.filename or folder), error) from None


def _sum_of(contents: Contents, versions: str) -> str:
    """A hash of all inputs of an environment."""
    parts = (
        *(sha256_of(contents.wheel), versions, *sorted(contents.requirements)),
        *(str(contents.interpreter), contents.file_name),
    )
    return sha256("\n".join(parts).encode()).hexdigest()


def _read(folder: Path) -> dict[str, Any]:
    """The package's description in the folder; empty if there is none, or it is incomplete."""
    try:
        found = json.loads((folder / _MANIFEST).read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_unchanged(path: Path, folder: Path, before: Mapping[str, Any]) -> bool:
    """Whether a file is unchanged since it was written."""
    if not path.is_file():
        return False
    return asdict(Piece.of("environment", path, folder)) in before["pieces"]


def _pieces(folder: Path, contents: Contents) -> tuple[Piece, ...]:
    jars = [folder / _JARS / jar.file_name for jar in locked_jars()]
    return tuple(
        Piece.of(what, path, folder)
        for what, path in [
            ("wheel", contents.wheel),
            ("environment", folder / contents.file_name),
            ("versions", folder / _VERSIONS),
            ("entry point", folder / _ENTRY.name),
            *(("jar", jar) for jar in jars),
        ]
    )


def _finished(
    folder: Path,
    contents: Contents,
    before: Mapping[str, Any],
    made_of: str,
    fetched: Sequence[str],
) -> Package:
    """Write the package's description, and remove files of an earlier package."""
    pieces = _pieces(folder, contents)
    entries = [asdict(piece) for piece in pieces]
    earlier = before.get("pieces", [])
    for name in {piece["file"] for piece in earlier} - {piece.file for piece in pieces}:
        (folder / name).unlink(missing_ok=True)
    half = folder / f".{_MANIFEST}.part"
    half.write_text(json.dumps({"made_of": made_of, "pieces": entries}, indent=2))
    half.replace(folder / _MANIFEST)
    made = tuple(
        one["file"] for one in entries if one not in earlier or Path(one["file"]).name in fetched
    )
    spark = {
        "spark.archives": f"{(folder / contents.file_name).absolute()}#{_FOLDER_OF_EXECUTORS}",
        WORKERS_PYTHON: f"./{_FOLDER_OF_EXECUTORS}/bin/python",
    }
    return Package(folder, pieces, contents.interpreter, made, spark)
