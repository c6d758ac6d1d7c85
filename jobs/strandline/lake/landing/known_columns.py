"""The columns for a pipeline's expressions, from the logs of its tables; without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from strandline.errors import InputError, NoAccessError, StrandlineError
from strandline.lake.landing.open_table import NoTableError, open_table
from strandline.lake.store.lake import Lake
from strandline.spec.chained import ResultsSpec
from strandline.spec.expressions import problems_of, refuse_if_any
from strandline.spec.pipeline import PipelineSpec
from strandline.sql.column_types import Columns, ColumnType, columns_of
from strandline.tables import INPUT, NOT_OF_A_RESULT, firings_table

if TYPE_CHECKING:
    from strandline.lake.landing.log import LandingLog

Known = Mapping[str, Columns | None]
"""Columns by `Use.table`; None: the table does not exist, or only a catalog knows its location."""


def columns_by_log(spec: PipelineSpec, log: LandingLog | None) -> Known:
    """The columns of a pipeline's landing by its log; None if only a catalog knows the table."""
    if isinstance(spec, ResultsSpec):
        return {"": _of_results(spec, None if log is None else log.table)}
    logs = {} if log is None else log.of_sides
    sides = {name: _of_table(logs[name].table) if logs else None for name in spec.sides}
    return _of_two(sides) if spec.has_two_sources else sides


def require_expressions(spec: PipelineSpec, log: LandingLog | None) -> None:
    """Refuse a pipeline with wrong expressions.

    Args:
        spec: the pipeline.
        log: the landing table's log; None: not known without a catalog, so columns are not checked.

    Raises:
        InputError: some are wrong; all of them are named.
    """
    refuse_if_any(problems_of(spec, columns_by_log(spec, log), spec.pipeline), spec.pipeline)


def columns_in_lake(
    lake: Lake, spec: PipelineSpec, *, has_landed: bool = False
) -> tuple[Known, list[str]]:
    """The columns of a lake's newest tables, and the reasons why some are not known.

    Args:
        lake: where they lie.
        spec: the pipeline that reads them.
        has_landed: whether its landing tables have been read before.

    Raises:
        InputError: a landing table that was read before does not exist any more, or it cannot be
            read any more, other than for a store that does not answer.
    """
    if isinstance(spec, ResultsSpec):
        return {"": _of_results(spec, _published(lake, spec.upstream.pipeline, "firings"))}, []
    found: dict[str, Columns | None] = {}
    notes: list[str] = []
    for name, side in spec.sides.items():
        place = f"sources.{name}.table" if name else "source.table"
        found[name], note = _newest(lake, side.source.table, place, has_landed=has_landed)
        notes += [note] * bool(note)
    return (_of_two(found) if spec.has_two_sources else found), notes


def _newest(lake: Lake, table: str, place: str, *, has_landed: bool) -> tuple[Columns | None, str]:
    not_checked = "its columns are not checked"
    if lake.is_catalog_name(table):
        return (
            None,
            f"{place}: {table} is a table of a catalog, which Spark alone asks: {not_checked}",
        )
    uri = lake.resolve(table)  # raises if no table can lie there, which is wrong and not missing
    try:
        return _of_table(open_table(uri, place, table)), ""
    except NoTableError:
        if has_landed:
            raise
        return None, f"{place}: no Delta table at {table} yet: {not_checked}"
    except StrandlineError as error:
        # runs may have rights that whoever asks has not
        if has_landed and isinstance(error, InputError) and not isinstance(error, NoAccessError):
            raise
        return None, f"{error.place}: {error.problem}: {not_checked}"


def _published(lake: Lake, pipeline: str, table: str) -> DeltaTable | None:
    """A published table, opened without Arrow; None if it does not exist."""
    try:
        return DeltaTable(f"{lake.root_of(pipeline)}/{table}")
    except TableNotFoundError:
        return None


def _of_table(table: DeltaTable) -> Columns:
    return columns_of(json.loads(table.schema().to_json()))


def _of_two(sides: Mapping[str, Columns | None]) -> Known:
    """The columns of each side, of the records of both sides, and of their pairs."""
    left, right = sides.get("left"), sides.get("right")
    known: dict[str, Columns | None] = {"left": left, "right": right}
    if left is None or right is None:
        return known
    pairs = {
        f"{name}_{own}": of for name, side in known.items() for own, of in (side or {}).items()
    }
    return known | {"both": {**left, **right, INPUT: "string"}, "pairs": pairs}


def _of_results(spec: ResultsSpec, firings: DeltaTable | None) -> Columns:
    """The columns of another pipeline's firings, by its file and its published table."""
    upstream = spec.upstream
    own: dict[str, ColumnType] = dict.fromkeys([*upstream.source.key, *upstream.contents])
    columns: dict[str, Any] = {**firings_table(upstream.source.key).columns, **own}
    if firings is not None:
        columns |= _of_table(firings)
    return {name: of for name, of in columns.items() if name not in NOT_OF_A_RESULT}
