"""document: reads what a command on another machine has left in the lake, for Airflow's tasks."""

from __future__ import annotations

from typing import Annotated

import typer

from strandline.cli.json_document import take_document, write_document


def document(uri: Annotated[str, typer.Argument(help="Its URI.", metavar="URI")]) -> None:
    """Show the JSON document at a URI, and remove it there.

    A command whose `STRANDLINE_JSON_FILE` names a URI has written it.
    """
    write_document(take_document(uri))
