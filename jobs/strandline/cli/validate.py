"""validate: whether pipeline files are right, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from strandline.cli import show
from strandline.cli.options import AsJson, Pipelines, pipelines_folder
from strandline.errors import InputError, problem_of
from strandline.spec import find_spec, load_spec, spec_files


def validate(
    targets: Annotated[
        list[str] | None, typer.Argument(help="Pipelines or files; default: all.")
    ] = None,
    as_json: AsJson = False,
    pipelines: Pipelines = None,
) -> None:
    """Check pipeline files, all mistakes of each with their way out; without Spark."""
    folder = pipelines_folder(pipelines)
    chosen = targets or [str(path) for path in spec_files(folder)]
    if not chosen:
        raise InputError("--pipelines", f"{folder.name}/ has no pipeline files", "name a folder")
    results = []
    for target in chosen:
        path = Path(target)
        try:
            is_file = path.suffix in {".yaml", ".yml"}
            spec = load_spec(path) if is_file else find_spec(folder, target)
            if spec.quality.expectations:
                from strandline.quality.audit.run import validate_expectations  # noqa: PLC0415

                validate_expectations(spec)
        except InputError as error:
            results.append({"target": target, "valid": False, "problem": str(error)})
        except Exception as error:  # noqa: BLE001 - one file's trouble is not the others'
            problem = f"{target}: {problem_of(error)}"
            results.append({"target": target, "valid": False, "problem": problem})
        else:
            results.append({"target": target, "valid": True, "pipeline": spec.pipeline})
    show.document(results, as_json=as_json, human=show.validated)
    if not all(result["valid"] for result in results):
        raise typer.Exit(2)
