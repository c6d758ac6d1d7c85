"""schema: the JSON schema of a pipeline file, or of its test, for editors."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def schema(
    tests: Annotated[
        bool, typer.Option("--tests", help="Print the schema of pipelines' tests instead.")
    ] = False,
) -> None:
    """Print the JSON schema of pipeline files.

    Editors complete and explain the keys of a file by it.
    """
    from strandline.spec.schema import json_schema  # noqa: PLC0415
    from strandline.trial.file import SampleTest  # noqa: PLC0415

    content = SampleTest.model_json_schema() if tests else json_schema()
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
