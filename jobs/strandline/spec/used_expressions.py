"""The expressions of a pipeline, with their place, their table and the required kind of value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from strandline.spec.evictor import DeltaEvictor
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.trigger import Delta
from strandline.spec.watermark import CandidateExpression, Punctuated
from strandline.sql.column_types import Wanted

TableName = Literal["", "left", "right", "both", "pairs"]
"""The table that an expression reads: the single source, a side, the records of both sides, or
their pairs."""


@dataclass(frozen=True)
class Use:
    """An expression of a pipeline.

    Attributes:
        place: its path in the pipeline's file.
        text: the expression.
        wanted: the required kind of value; `aggregate`: an aggregate; `column`: a column's exact
            name.
        table: the table that it reads.
    """

    place: str
    text: str
    wanted: Wanted | Literal["aggregate", "column"]
    table: TableName = ""

    @property
    def filters(self) -> bool:
        """Whether it becomes a filter of the records, as a key does, which is never null."""
        return self.wanted in {"any", "condition", "date", "gap", "sequence", "time"}


def uses_of(spec: PipelineSpec) -> Iterator[Use]:
    """The expressions of a pipeline, in the order of the keys of its file."""
    for name, side in spec.sides.items():
        place = f"sources.{name}" if name else "source"
        of_watermark = f"{place}.watermark" if name else "watermark"
        yield from _of_side(side, place, of_watermark, cast("TableName", name))
    records: TableName = "both" if spec.has_two_sources else ""
    if isinstance(spec.fires_by, Delta):
        yield Use("trigger.of", spec.fires_by.of, "number", records)
    if isinstance(spec.evicts_by, DeltaEvictor):
        yield Use("evictor.of", spec.evicts_by.of, "number", records)
    counted: TableName = "pairs" if spec.has_pairs_of_windows else records
    for aggregate, text in spec.aggregates.items():
        yield Use(f"aggregates.{aggregate}", text, "aggregate", counted)


def _of_side(spec: PipelineSpec, place: str, of_watermark: str, table: TableName) -> Iterator[Use]:
    """The expressions of a source and its watermark; for results only the key."""
    if spec.reads_results_of is None:
        yield from _of_source(spec, place, of_watermark, table)
    else:
        for name, text in spec.source.key.items():
            yield Use(f"{place}.key.{name}", text, "any", table)
    if spec.window.gap_of_record is not None:
        yield Use("window.session", spec.window.gap_of_record, "gap", table)


def _of_source(
    spec: PipelineSpec, place: str, of_watermark: str, table: TableName
) -> Iterator[Use]:
    source, watermark = spec.source, spec.watermark
    compared = source.deduplicate.columns if source.deduplicate else ()
    uses: list[tuple[str, str | None, Wanted | Literal["column"]]] = [
        ("arrival_date", source.arrival_date, "date"),
        ("arrival_time", source.arrival_time, "time"),
        ("event_time", None if spec.arrival_is_event_time else source.event_time, "time"),
        ("channel", source.channel, "any"),
        *((f"key.{name}", text, "any") for name, text in source.key.items()),
        ("sequence", source.sequence, "sequence"),
        *(("id", name, "column") for name in source.id or ()),
        *(("deduplicate.columns", name, "column") for name in compared),
        ("where", source.where, "condition"),
        ("valid", source.valid, "condition"),
    ]
    for name, text, wanted in uses:
        if text is not None:
            yield Use(f"{place}.{name}", text, wanted, table)
    if isinstance(watermark, Punctuated):
        yield Use(f"{of_watermark}.marker", watermark.marker, "condition", table)
    if isinstance(watermark, CandidateExpression):
        yield Use(f"{of_watermark}.candidate", watermark.candidate_, "time", table)
