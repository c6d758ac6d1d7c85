"""validate, schema: the mistakes in pipeline files, and their JSON schema; without Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strandline.cli import show
from strandline.cli.console import escape
from strandline.cli.groups import Places
from strandline.cli.options import AsJson
from strandline.errors import InputError, problem_of

if TYPE_CHECKING:
    from strandline.lake.store.lake import Lake
    from strandline.spec import PipelineSpec


def validate(
    *,
    targets: Annotated[
        list[str] | None, typer.Argument(help="Pipelines or files; default: all.")
    ] = None,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Check pipeline files: every mistake, and the way out.

    Expressions are checked against the columns of the tables that they read, and against what Sail
    computes if it is the engine (by `STRANDLINE_ENGINE`, or `engine` in the file). No engine is
    started.
    """
    from strandline.spec import files_by_name, require_folder, spec_files  # noqa: PLC0415

    folder = at.folder
    if not targets:
        require_folder(folder)
    chosen = targets or [str(path) for path in spec_files(folder)]
    if not chosen:
        raise InputError("--pipelines", f"{folder}/ has no pipeline files", "name a folder")
    root, named = at.root, files_by_name(folder)
    results = [_validated(target, folder, named, root) for target in chosen]
    show.document(results, as_json=as_json, human=_show)
    if not all(result["valid"] for result in results):
        raise typer.Exit(2)


def _validated(
    target: str, folder: Path, named: Mapping[str, Sequence[Path]], lake: Lake
) -> dict[str, Any]:
    """The result for a pipeline file: `valid`, and its `problem`, or notes on its expressions."""
    from strandline.quality.audit.plain import are_plain  # noqa: PLC0415
    from strandline.spec import file_of, load_spec, only_one  # noqa: PLC0415

    try:
        is_file = target.endswith((".yaml", ".yml"))
        path = Path(target) if is_file else file_of(folder, target)
        spec = load_spec(path)
        if not are_plain(spec):
            from strandline.quality.audit.run import validate_expectations  # noqa: PLC0415

            validate_expectations(spec)
        files = named.get(spec.pipeline, ())
        if path.resolve() in {one.resolve() for one in files}:
            only_one(spec.pipeline, files)
        notes = _check_expressions(spec, lake, path.name)
    except InputError as error:
        return {"target": target, "valid": False, "problem": str(error)}
    except Exception as error:  # noqa: BLE001 - other files are still checked
        return {"target": target, "valid": False, "problem": f"{target}: {problem_of(error)}"}
    return {"target": target, "valid": True, "pipeline": spec.pipeline, "notes": notes}


def _check_expressions(spec: PipelineSpec, lake: Lake, origin: str) -> list[str]:
    """Check the expressions of a pipeline; notes on those that only an engine can check.

    Raises:
        InputError: expressions are wrong; the message names all of them.
    """
    from strandline.lake.landing.known_columns import columns_in_lake  # noqa: PLC0415
    from strandline.lake.sessions.choice import engine_named  # noqa: PLC0415
    from strandline.spec.expressions import left_to_the_engine, problems_of, refuse_if_any  # noqa: PLC0415

    columns, notes = columns_in_lake(lake, spec)
    problems = problems_of(spec, columns, origin)
    if engine_named(os.environ, spec.engine) == "sail":
        from strandline.pipeline.request.unsupported import problems_on_sail  # noqa: PLC0415

        problems += problems_on_sail(spec, columns, origin)
    refuse_if_any(problems, origin)
    unchecked = [f"{use.place}: {why}" for use, why in left_to_the_engine(spec, columns)]
    return [*notes, *(f"{one}: checked by the engine in `plan` and each run" for one in unchecked)]


def _show(results: Sequence[Mapping[str, Any]]) -> None:
    """Print each pipeline file with its mistakes, or with what only a run can check."""
    for result in results:
        if result["valid"]:
            show.out.print(f"[green]valid[/]  {escape(result['target'])}")
        else:
            show.out.print(f"[red]wrong[/]  {escape(result['problem'], keep=show.LINES)}")
        for note in result.get("notes", ()):
            show.out.print(f"  note: {escape(note)}")


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
