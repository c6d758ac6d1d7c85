"""Which expressions a pipeline says, where, over which columns, and what each is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from strandline.spec.chained import ResultsSpec
from strandline.spec.column_types import Wanted
from strandline.spec.evictor import DeltaEvictor
from strandline.spec.joined import JoinedSpec, TwoSourcesSpec, WindowPairsSpec
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.trigger import Delta
from strandline.spec.watermark import CandidateExpression, Punctuated
from strandline.spec.window import Session

TableName = Literal["", "left", "right", "both", "pairs"]
"""Over which columns an expression is: of the one source; of a side; of the records of both sides
in one table; of pairs of them."""


@dataclass(frozen=True)
class Use:
    """An expression of a pipeline.

    Attributes:
        place: its path in the pipeline's file.
        text: the expression itself.
        wanted: what it is asked for; `aggregate`: of many records; `column`: a column by its exact
            name.
        table: over which columns.
    """

    place: str
    text: str
    wanted: Wanted | Literal["aggregate", "column"]
    table: TableName = ""


def uses_of(spec: PipelineSpec) -> Iterator[Use]:
    """The expressions of a pipeline, in the order in which its file may say them."""
    if isinstance(spec, TwoSourcesSpec):
        sides: dict[TableName, PipelineSpec] = {"left": spec.left, "right": spec.right}
        for name, side in sides.items():
            place = f"sources.{name}"
            yield from _of_source(side, place, f"{place}.watermark", name)
            yield from _of_gap(side, name)
    elif isinstance(spec, ResultsSpec):
        yield from _of_key(spec, "source", "")
        yield from _of_gap(spec, "")
    else:
        yield from _of_source(spec, "source", "watermark", "")
        yield from _of_gap(spec, "")
    if isinstance(spec, JoinedSpec):
        return  # its results are the pairs themselves
    records: TableName = "both" if isinstance(spec, TwoSourcesSpec) else ""
    if isinstance(spec.fires_by, Delta):
        yield Use("trigger.of", spec.fires_by.of, "number", records)
    if isinstance(spec.evicts_by, DeltaEvictor):
        yield Use("evictor.of", spec.evicts_by.of, "number", records)
    counted: TableName = "pairs" if isinstance(spec, WindowPairsSpec) else records
    for aggregate, text in spec.aggregates.items():
        yield Use(f"aggregates.{aggregate}", text, "aggregate", counted)


def _of_source(
    spec: PipelineSpec, place: str, of_watermark: str, table: TableName
) -> Iterator[Use]:
    source, watermark = spec.source, spec.watermark
    if source.arrival_date is not None:
        yield Use(f"{place}.arrival_date", source.arrival_date, "date", table)
    yield Use(f"{place}.arrival_time", source.arrival_time, "time", table)
    if not spec.arrival_is_event_time:
        yield Use(f"{place}.event_time", source.event_time, "time", table)
    if source.channel is not None:
        yield Use(f"{place}.channel", source.channel, "any", table)
    yield from _of_key(spec, place, table)
    if source.sequence is not None:
        yield Use(f"{place}.sequence", source.sequence, "sequence", table)
    for name in source.id or ():
        yield Use(f"{place}.id", name, "column", table)
    for name in source.deduplicate.columns if source.deduplicate else ():
        yield Use(f"{place}.deduplicate.columns", name, "column", table)
    for name, text in (("where", source.where), ("valid", source.valid)):
        if text is not None:
            yield Use(f"{place}.{name}", text, "condition", table)
    if isinstance(watermark, Punctuated):
        yield Use(f"{of_watermark}.marker", watermark.marker, "condition", table)
    if isinstance(watermark, CandidateExpression):
        yield Use(f"{of_watermark}.candidate", watermark.candidate_, "time", table)


def _of_key(spec: PipelineSpec, place: str, table: TableName) -> Iterator[Use]:
    for name, text in spec.source.key.items():
        yield Use(f"{place}.key.{name}", text, "any", table)


def _of_gap(spec: PipelineSpec, table: TableName) -> Iterator[Use]:
    """The gap of sessions, where each record has its own."""
    if isinstance(spec.window, Session) and isinstance(spec.window.session, str):
        yield Use("window.session", spec.window.session, "gap", table)
