"""The fit of a run's rows with a published table, refused with the changes in the landing table."""

from __future__ import annotations

from collections.abc import Iterator

from deltalake import DeltaTable
from pyspark.sql.types import StructType

from strandline.errors import InputError
from strandline.lake.landing.known_columns import columns_by_log
from strandline.lake.publish.apply_diff import fit_into
from strandline.lake.store.schema import Fit
from strandline.pipeline.request.context import Context
from strandline.spec import PipelineSpec
from strandline.spec.used_expressions import uses_of
from strandline.sql.calls import NotUnderstood, read_sql
from strandline.sql.column_types import Columns, column_named, sql_name
from strandline.tables import PublishedTable


def fit_of(ctx: Context, table: DeltaTable, target: PublishedTable, staged: StructType) -> Fit:
    """The fit of staged columns, or of a diff's, with an open table; see `fit_into`.

    Raises:
        InputError: a staged column cannot be converted to the table's type without loss. It names
            the columns of the landing table that have another type than the last run read.
    """
    try:
        return fit_into(table, target, staged, ctx.spec.pipeline)
    except InputError as refused:
        if retyped := "; ".join(_retyped(ctx)):
            problem = f"{refused.problem} ({retyped})"
            raise InputError(refused.place, problem, refused.way_out) from refused
        raise


def _retyped(ctx: Context) -> Iterator[str]:
    """The used columns of a single landing table with another type than the last run read."""
    spec, log = ctx.spec, ctx.landing.log
    if spec.has_two_sources or spec.reads_results_of:
        return
    in_force = reversed(ctx.ledger.state().in_force)
    last = next((run for run in in_force if run.landing_version is not None), None)
    if last is None or log.is_another(last.landing_id):
        return
    version = last.landing_version or 0
    then = log.at(version)
    if then is None:
        return
    now, before = (columns_by_log(spec, one)[""] or {} for one in (log, then))
    for name in _used(spec, now):
        was = sql_name(before.get(name))
        if was is not None and was != sql_name(now[name]):
            yield (
                f"column {name} of the landing table is {sql_name(now[name])} now, and was {was} "
                f"in its version {version}, which the last run read"
            )


def _used(spec: PipelineSpec, columns: Columns) -> list[str]:
    """The columns that a pipeline's expressions read, by their names in the table."""
    found = dict[str, None]()
    for use in uses_of(spec):
        sql = read_sql(use.text)
        names = [] if isinstance(sql, NotUnderstood) else [read.path[0] for read in sql.reads]
        own = (column_named(name, columns) for name in (use.text, *names))
        found |= dict.fromkeys(name for name in own if name is not None)
    return [*found]
