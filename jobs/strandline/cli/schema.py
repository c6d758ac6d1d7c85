"""schema: the keys of a pipeline file, for editors."""

from __future__ import annotations

import json

import typer


def schema() -> None:
    """Print the JSON schema of pipeline files: editors complete and explain keys by it."""
    from strandline.spec.schema import json_schema  # noqa: PLC0415

    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
