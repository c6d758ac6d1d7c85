"""The features of a pipeline that the chosen engine does not support; they are refused by name."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.errors import InputError
from strandline.lake.landing.known_columns import columns_by_log
from strandline.lake.landing.log import LandingLog
from strandline.lake.local import MEMORY
from strandline.lake.sessions.choice import EngineChoice
from strandline.lake.store.lake import Lake
from strandline.lake.store.places import is_uri
from strandline.spec.expressions import expressions_of, refuse_if_any
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.table_columns import Tables
from strandline.sql.column_types import ON_SPARK
from strandline.sql.on_sail import names_not_on_sail

_READ_BY_SAIL = {"timestampNtz", "deletionVectors", "columnMapping"}
"""Reader features of Delta: Sail supports the first, and reads tables that declare the others
without using them."""
_MAPPING = "delta.columnMapping.mode"


def require_supported(choice: EngineChoice, spec: PipelineSpec, log: LandingLog | None) -> None:
    """Refuse features of a pipeline that an engine does not support.

    Args:
        choice: the engine.
        spec: the pipeline.
        log: the landing table's log; None: only a catalog knows the table's location.

    Raises:
        InputError: the engine does not support a feature.
    """
    if choice.name != "sail":
        return
    for place, problem in _not_on_sail(spec, log):
        raise InputError(f"{spec.pipeline}: {place}", problem, ON_SPARK)
    refuse_if_any(problems_on_sail(spec, columns_by_log(spec, log), spec.pipeline), spec.pipeline)


def stores_of(lake: Lake, log: LandingLog | None) -> set[str]:
    """The kinds of remote stores, such as `s3`, of the lake and the landing tables."""
    places = [lake.root, *(one.uri for one in _logs(log))]
    return {place.partition(":")[0] for place in places if is_uri(place)}


def _not_on_sail(spec: PipelineSpec, log: LandingLog | None) -> Iterator[tuple[str, str]]:
    """Settings and landing tables that Sail does not support, by their place in the file."""
    for name in {*spec.spark} - {MEMORY}:
        yield f"spark.{name}", "Sail has no such setting"
    if log is None:
        yield "source.table", "Sail knows no catalog"
    for one in _logs(log):
        for problem in _of_table(one):
            yield "source.table", problem


def problems_on_sail(spec: PipelineSpec, tables: Tables, origin: str) -> list[InputError]:
    """The functions that Sail lacks, or that have another result there, whatever the types.

    Problems that depend on the types of columns are asked of Sail (`ask_engine.py`).

    Args:
        spec: the pipeline.
        tables: the columns of the tables that the expressions read.
        origin: the first part of each place: the file, or the pipeline's name.
    """
    return [
        InputError(f"{origin}: {use.place}", f"{use.text!r}: {problem}", way_out)
        for use in expressions_of(spec, tables)
        for problem, way_out in names_not_on_sail(use.text)
    ]


def _logs(log: LandingLog | None) -> list[LandingLog]:
    """The logs of the landing tables; none for a table that only a catalog knows."""
    return [] if log is None else [*log.of_sides.values()]


def _of_table(log: LandingLog) -> Iterator[str]:
    """The features of a landing table that Sail does not support."""
    unknown = {*(log.table.protocol().reader_features or ())} - _READ_BY_SAIL
    if unknown:
        yield f"its table uses {', '.join(sorted(unknown))}, which Sail cannot read"
    if log.table.metadata().configuration.get(_MAPPING, "none").lower() != "none":
        yield "its table maps the names of its columns, which Sail cannot read"
    if log.deleted:
        yield "its table has deletion vectors, which Sail cannot read"
