"""The building of a cluster's package: later calls rebuild only pieces that have changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import strandline
from strandline.errors import not_writable
from strandline.lake.jars import fetch, locked_jars, sha256_of, spark_jars_folder
from strandline.lake.local import WORKERS_PYTHON
from strandline.packing.builds import Contents, Uv, pack, versions_here, wheel_of

_MANIFEST, _VERSIONS, _JARS = "package.json", "versions.txt", "jars"
_ENTRY = Path(strandline.__file__).parent / "cli" / "entry" / "strandline_job.py"
_FOLDER_OF_EXECUTORS = "environment"


def package(
    folder: Path,
    contents: Contents,
    *,
    environment: Mapping[str, str],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Build, or update, the package of this Strandline in a folder.

    Args:
        folder: the folder; it is created if it does not exist.
        contents: the environment's contents; its `wheel` may be a folder of sources.
        environment: environment variables of uv, Ivy and Java (mirrors, proxies, JAVA_HOME).
        say: called with each step as it begins.

    Returns:
        The package as a JSON document: its `folder`; its files as `pieces`, see `_piece`; the
        `python` that every worker must have, such as `/usr/bin/python3.11`; the files that this
        call has `made` or replaced; the `spark` settings of runs that use it.

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
    return _piece("environment", path, folder) in before["pieces"]


def _piece(what: str, path: Path, folder: Path) -> dict[str, Any]:
    """One file of a package: what it is, its path below the folder, its size and its hash."""
    return {
        "what": what,
        "file": str(path.relative_to(folder)),
        "bytes": path.stat().st_size,
        "sha256": sha256_of(path),
    }


def _finished(
    folder: Path,
    contents: Contents,
    before: Mapping[str, Any],
    made_of: str,
    fetched: Sequence[str],
) -> dict[str, Any]:
    """Write the package's description, and remove files of an earlier package."""
    pieces = [
        _piece(what, path, folder)
        for what, path in [
            ("wheel", contents.wheel),
            ("environment", folder / contents.file_name),
            ("versions", folder / _VERSIONS),
            ("entry point", folder / _ENTRY.name),
            *(("jar", folder / _JARS / jar.file_name) for jar in locked_jars()),
        ]
    ]
    earlier = before.get("pieces", [])
    for name in {piece["file"] for piece in earlier} - {piece["file"] for piece in pieces}:
        (folder / name).unlink(missing_ok=True)
    half = folder / f".{_MANIFEST}.part"
    half.write_text(json.dumps({"made_of": made_of, "pieces": pieces}, indent=2))
    half.replace(folder / _MANIFEST)
    archive = (folder / contents.file_name).absolute()
    return {
        "folder": str(folder),
        "pieces": pieces,
        "python": str(contents.interpreter),
        "made": [
            piece["file"]
            for piece in pieces
            if piece not in earlier or Path(piece["file"]).name in fetched
        ],
        "spark": {
            "spark.archives": f"{archive}#{_FOLDER_OF_EXECUTORS}",
            WORKERS_PYTHON: f"./{_FOLDER_OF_EXECUTORS}/bin/python",
        },
    }
