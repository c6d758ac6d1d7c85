"""The folder of what a cluster needs: made once, and again only where something has changed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import strandline
from strandline.errors import not_writable
from strandline.lake.jars import LOCK, fetch, jars_of, sha256_of, spark_jars_folder
from strandline.lake.local import WORKERS_PYTHON
from strandline.packing.environment import Contents, pack, versions_here
from strandline.packing.uv import Uv
from strandline.packing.wheel import origin, wheel_of

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
        sha256: of its content.
    """

    what: str
    file: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, what: str, path: Path, folder: Path) -> Piece:
        """The piece that a file is."""
        return cls(what, str(path.relative_to(folder)), path.stat().st_size, sha256_of(path))


@dataclass(frozen=True)
class Package:
    """What was made, or was there already.

    Attributes:
        folder: all of it.
        pieces: its files.
        python: what every worker must have, such as `/usr/bin/python3.11`.
        made: files that were not there, or were others.
        spark: the settings by which a run uses it.
    """

    folder: Path
    pieces: tuple[Piece, ...]
    python: Path
    made: tuple[str, ...]
    spark: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """As one document for machines."""
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
    """Bring a folder to what a cluster needs of this Strandline.

    Args:
        folder: made if it is not there.
        contents: of the environment; its `wheel` may be a folder of sources.
        environment: variables of uv, Ivy and Java (mirrors, proxies, JAVA_HOME).
        say: called with each step as it begins.

    Raises:
        InputError: something is missing here, or cannot be written.
        RetryableError: a package or a jar cannot be had at present.
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
        if before.get("made_of") != made_of or not _is_whole(archive, folder, before):
            say("environment")
            holds = pack(contents, versions, archive, uv)
            (folder / _VERSIONS).write_text(holds)
        say("jars")
        (folder / _JARS).mkdir(exist_ok=True)
        fetched = fetch(environment, folder / _JARS)
        return _finished(folder, contents, before, made_of, fetched)
    except OSError as error:
        raise not_writable(str(error.filename or folder), error) from None


def asked_contents(
    wheel: Path | None, requirements: tuple[str, ...], python: Path | None
) -> Contents:
    """The contents of an environment by what a user has given; None: as here.

    Raises:
        InputError: it is not known where the wheel is.
    """
    return Contents(origin(wheel), requirements, python or Path(sys.base_prefix))


def _sum_of(contents: Contents, versions: str) -> str:
    """A hash of all that an environment follows from."""
    parts = (
        *(sha256_of(contents.wheel), versions, *sorted(contents.requirements)),
        *(str(contents.interpreter), contents.file_name),
    )
    return sha256("\n".join(parts).encode()).hexdigest()


def _read(folder: Path) -> dict[str, Any]:
    """What the folder says of itself; empty: nothing, or a package that did not get ready."""
    try:
        found = json.loads((folder / _MANIFEST).read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_whole(path: Path, folder: Path, before: Mapping[str, Any]) -> bool:
    """Whether a file is there as it was written."""
    if not path.is_file():
        return False
    return asdict(Piece.of("environment", path, folder)) in before["pieces"]


def _pieces(folder: Path, contents: Contents) -> tuple[Piece, ...]:
    jars = [folder / _JARS / jar.file_name for jar in jars_of(LOCK.read_text())]
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
    """The package, written down; files of an earlier one that it does not have are removed."""
    pieces = _pieces(folder, contents)
    said = [asdict(piece) for piece in pieces]
    earlier = before.get("pieces", [])
    for name in {piece["file"] for piece in earlier} - {piece.file for piece in pieces}:
        (folder / name).unlink(missing_ok=True)
    half = folder / f".{_MANIFEST}.part"
    half.write_text(json.dumps({"made_of": made_of, "pieces": said}, indent=2))
    half.replace(folder / _MANIFEST)
    made = tuple(
        one["file"] for one in said if one not in earlier or Path(one["file"]).name in fetched
    )
    spark = {
        "spark.archives": f"{(folder / contents.file_name).absolute()}#{_FOLDER_OF_EXECUTORS}",
        WORKERS_PYTHON: f"./{_FOLDER_OF_EXECUTORS}/bin/python",
    }
    return Package(folder, pieces, contents.interpreter, made, spark)
