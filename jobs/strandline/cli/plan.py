"""plan: the steps that a run would do, computed without writing anything."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from strandline.cli.groups import EngineOptions, Places
from strandline.cli.options import AsJson, Pipeline, PreviewRows, instant_at, range_of
from strandline.cli.run_options import Cutoff, Limits, Repetition
from strandline.cli.running import run_pipeline
from strandline.errors import InputError
from strandline.pipeline.request.request import MOST_SHOWN


def plan(
    pipeline: Pipeline,
    cutoff: Cutoff,
    limits: Limits,
    *,
    start: Annotated[str | None, typer.Option(help="First instant of the range.")] = None,
    end: Annotated[str | None, typer.Option(help="End of the range, exclusive.")] = None,
    to: Annotated[str | None, typer.Option(help="Show a scheduled run up to this instant.")] = None,
    preview_rows: PreviewRows = MOST_SHOWN,
    as_json: AsJson = False,
    on: EngineOptions,
    at: Places,
) -> None:
    """Show what a backfill or a scheduled run would do.

    A backfill of --start and --end, or a scheduled run up to --to. Nothing is written.
    """
    request: dict[str, Any] = {"dry_run": True, "preview_rows": preview_rows, **limits.request()}
    if to is not None:
        if start or end or cutoff != Cutoff():
            raise InputError(
                "--to", "is all that a scheduled run needs", "omit the options of a backfill"
            )
        request |= {"kind": "advance", "to_ms": instant_at("--to", to)}
    elif start is None or end is None:
        raise InputError("plan", "no range", "give --start and --end, or --to for a scheduled run")
    else:
        request |= {"kind": "backfill", "range": range_of(start, end), **cutoff.request()}
    run_pipeline(pipeline, request, at, on, Repetition(), as_json=as_json)
