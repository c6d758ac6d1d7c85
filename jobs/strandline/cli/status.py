"""status: how far a pipeline is, and what is not as it must be."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from strandline.cli import show
from strandline.cli.days import Since, Until, asked_days
from strandline.cli.options import AsJson, LakeAt, Pipeline, Pipelines, lake_at, spec_of
from strandline.model.intervals import instant_of


def status(
    pipeline: Pipeline,
    since: Since = None,
    until: Until = None,
    deep: Annotated[
        bool, typer.Option(help="Read all of the tables, and hold them against each other.")
    ] = False,
    as_json: AsJson = False,
    pipelines: Pipelines = None,
    lake: LakeAt = None,
) -> None:
    """Show what is processed, open, late and malformed.

    Counts are of the last 90 days, or of --since and --until. No engine is started.
    """
    from strandline.pipeline.views.status import status_of  # noqa: PLC0415

    spec = spec_of(pipeline, pipelines)
    now_ms = instant_of(datetime.now(UTC))
    days = asked_days(since, until)
    found = status_of(spec, lake_at(lake), **days, now_ms=now_ms, deep=deep)
    show.document(found, as_json=as_json, human=show.status)
