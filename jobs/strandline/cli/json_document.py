"""The JSON document of a command, on stdout, in a file, or in a lake that machines share."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from strandline.cli.console import as_json
from strandline.errors import InputError, StrandlineError, storage_error
from strandline.lake.store.places import is_uri, path_of
from strandline.model.command import JSON_FILE_VARIABLE


def json_place() -> str | None:
    """The path or URI named by the environment; None if the document goes to stdout."""
    return os.environ.get(JSON_FILE_VARIABLE) or None


def write_document(content: Any) -> None:
    """Write a result as JSON to the place named by the environment, or else to stdout.

    Raises:
        InputError: the place cannot be written.
        RetryableError: its object store fails.
    """
    text, place = as_json(content), json_place()
    if place is None:
        typer.echo(text)
        return
    try:
        if is_uri(place):
            _write_in_lake(place, text)
        else:
            Path(place).write_text(text, encoding="utf-8")
    except OSError as error:
        named = f"{JSON_FILE_VARIABLE}={place}"
        of_store = storage_error(named, error) if is_uri(place) else None
        problem = f"cannot be written: {error.strerror or error}"
        way_out = "name a file in a folder that can be written"
        raise of_store or InputError(named, problem, way_out) from None


def write_failure(error: StrandlineError) -> None:
    """Write an error as JSON, where that can be written."""
    with suppress(StrandlineError, OSError):  # that it cannot be written is perhaps this very error
        write_document(failed(error))


def failed(error: StrandlineError) -> dict[str, Any]:
    """The document of an error: its parts, and its exit code."""
    parts = {
        "kind": type(error).__name__,
        "place": error.place,
        "problem": error.problem,
        "way_out": error.way_out,
    }
    return {"error": parts, "exit_code": error.exit_code}


def document(uri: Annotated[str, typer.Argument(help="Its URI.", metavar="URI")]) -> None:
    """Show the JSON document at a URI, and remove it there.

    A command whose `STRANDLINE_JSON_FILE` names a URI has written it.
    """
    from strandline.lake.store.reads import files_at  # noqa: PLC0415 - it needs Arrow

    folder, _, name = uri.rpartition("/")
    files = files_at(folder)
    try:
        with files.open_input_stream(name) as stream:
            content = json.loads(stream.read())
    except (FileNotFoundError, ValueError):
        problem = "no command has left a document here"
        raise InputError(uri, problem, "look into the log of its driver") from None
    files.delete_file(name)
    write_document(content)


def _write_in_lake(uri: str, text: str) -> None:
    """Write a text to a URI; its folder is created."""
    from strandline.lake.store.reads import files_at  # noqa: PLC0415 - it needs Arrow

    folder, _, name = uri.rpartition("/")
    if (local := path_of(folder)) is not None:
        local.mkdir(parents=True, exist_ok=True)
    with files_at(folder).open_output_stream(name) as stream:
        stream.write(text.encode())
