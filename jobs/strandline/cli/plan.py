"""plan: what a run would do, computed and shown; nothing is written."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from strandline.cli.options import (
    AcceptLoss,
    AllowRemovals,
    AsJson,
    AsOf,
    Close,
    Engine,
    EngineOptions,
    LakeAt,
    Master,
    MaxBytes,
    Pipeline,
    Pipelines,
    PreviewRows,
    Remote,
    Reopen,
    TrustThisMachine,
    instant_at,
    limits,
    range_of,
)
from strandline.cli.running import run_pipeline
from strandline.errors import InputError
from strandline.pipeline.request import MOST_SHOWN


def plan(
    pipeline: Pipeline,
    start: Annotated[str | None, typer.Option(help="First instant of the range.")] = None,
    end: Annotated[str | None, typer.Option(help="End of the range, exclusive.")] = None,
    to: Annotated[str | None, typer.Option(help="Show a scheduled run up to this instant.")] = None,
    as_of: AsOf = None,
    close: Close = False,
    reopen: Reopen = False,
    accept_loss: AcceptLoss = None,
    allow_removals: AllowRemovals = False,
    max_bytes: MaxBytes = None,
    preview_rows: PreviewRows = MOST_SHOWN,
    as_json: AsJson = False,
    engine: Engine = None,
    master: Master = None,
    remote: Remote = None,
    trust_this_machine: TrustThisMachine = False,
    pipelines: Pipelines = None,
    lake: LakeAt = None,
) -> None:
    """Show what a backfill or a scheduled run would do.

    A backfill of --start and --end, or a scheduled run up to --to. Nothing is written.
    """
    request: dict[str, Any] = {
        "dry_run": True,
        "preview_rows": preview_rows,
        **limits(accept_loss, allow_removals=allow_removals, max_bytes=max_bytes),
    }
    if to is not None:
        if start or end or as_of or close or reopen:
            raise InputError("--to", "says it all for a scheduled run", "give nothing beside it")
        request |= {"kind": "advance", "to_ms": instant_at("--to", to)}
    elif start is None or end is None:
        raise InputError("plan", "no range", "give --start and --end, or --to for a scheduled run")
    else:
        request |= {
            "kind": "backfill",
            "range": range_of(start, end),
            "as_of_ms": None if as_of is None else instant_at("--as-of", as_of),
            "close": close,
            "reopen": reopen,
        }
    on = EngineOptions(engine, master, remote, trust_this_machine)
    run_pipeline(pipeline, request, as_json=as_json, on=on, pipelines=pipelines, lake=lake)
