"""The JSON document of a command, on stdout or in a file."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import typer

from strandline.cli.answer_file import JSON_FILE_VARIABLE, json_file
from strandline.cli.console import as_json
from strandline.errors import InputError, StrandlineError


def write_document(content: Any) -> None:
    """Write a result as JSON to the file named by the environment, or else to stdout.

    Raises:
        InputError: the file cannot be written.
    """
    text, file = as_json(content), json_file()
    if file is None:
        typer.echo(text)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        place, problem = f"{JSON_FILE_VARIABLE}={file}", f"cannot be written: {error.strerror}"
        raise InputError(place, problem, "name a file in a folder that can be written") from None


def write_failure(error: StrandlineError) -> None:
    """Write an error as JSON, where that can be written."""
    parts = {
        "kind": type(error).__name__,
        "place": error.place,
        "problem": error.problem,
        "way_out": error.way_out,
    }
    with suppress(InputError, OSError):  # that it cannot be written is perhaps this very error
        write_document({"error": parts, "exit_code": error.exit_code})
