"""package, jars: what a cluster needs, built into one folder; and Delta's jars, fetched once."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from strandline.cli import show
from strandline.cli.console import escape, table
from strandline.cli.options import AsJson, given_path, not_empty
from strandline.cli.progress import progress
from strandline.errors import InputError


def package(
    *,
    to: Annotated[str, typer.Option(help="Folder to write into.")] = "cluster",
    requirements: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="PACKAGE",
            help="A further package of the environment, such as one that a function imports. May "
            "be given several times.",
        ),
    ] = None,
    worker_python: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Where the workers have their Python, such as /usr (for /usr/bin/python3.11). "
            "[as on this machine]",
        ),
    ] = None,
    wheel: Annotated[
        str | None,
        typer.Option(help="The wheel of this version. [where it was installed from]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Build what a cluster needs into a folder.

    That is the wheel, an environment and Delta's jars. The environment is one file, which Spark
    unpacks beside each executor; it holds Strandline and what it needs, in the versions of this
    environment, but no Python. Again it makes only what has changed. It needs a package index and,
    once, Maven Central.
    """
    from strandline.packing.builds import Contents, origin  # noqa: PLC0415
    from strandline.packing.package import package as build  # noqa: PLC0415

    if worker_python is not None and not Path(worker_python).is_absolute():
        problem = f"{worker_python!r} is not an absolute path"
        raise InputError("--worker-python", problem, "give a folder of the workers, such as /usr")
    folder, python = Path(not_empty("--to", to)), Path(worker_python or sys.base_prefix)
    contents = Contents(origin(given_path("--wheel", wheel)), tuple(requirements or ()), python)
    with progress(quiet=as_json) as say:
        built = build(folder, contents, environment=os.environ, say=say)
    show.document(built, as_json=as_json, human=_show)


def _show(built: Mapping[str, Any]) -> None:
    rows = table("size", "", "file", first="piece")
    rows.columns[1].justify = "right"
    for piece in built["pieces"]:
        state = "made" if piece["file"] in built["made"] else "as it was"
        rows.add_row(piece["what"], _size(piece["bytes"]), state, escape(piece["file"]))
    show.out.print(rows)
    total = sum(piece["bytes"] for piece in built["pieces"])
    show.out.print(f"in {escape(built['folder'])}: {_size(total)}", highlight=False)
    show.out.print(f"each worker must have {escape(built['python'])}", highlight=False)
    show.out.print("to use the environment, in the pipeline's file:", highlight=False)
    show.out.print("spark:", highlight=False)
    for name, value in built["spark"].items():
        show.out.print(f"  {name}: {escape(value)}", highlight=False, soft_wrap=True)


def _size(count: int) -> str:
    """A size such as `9.5 MB`; below a megabyte in kB."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def jars(*, as_json: AsJson = False) -> None:
    """Fetch Delta's jars for the engine spark.

    They are checked by their hashes. They come from Maven Central (DEFAULT_ARTIFACT_REPOSITORY
    names a mirror) and go to the jars of the installed pyspark. It needs Java, as Spark does; again
    it finds nothing to do.
    """
    from strandline.lake.jars import fetch  # noqa: PLC0415

    show.document(fetch(os.environ), as_json=as_json, human=_show_fetched)


def _show_fetched(fetched: Sequence[str]) -> None:
    for name in fetched:
        show.out.print(f"fetched {name}", highlight=False)
    if not fetched:
        show.out.print("nothing to fetch: Delta's jars are the locked ones")
