"""Windows whose content a function of the user's own tells: one call a firing, in the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from strandline.engine import columns as c
from strandline.engine.frames import PerIdentity, computed
from strandline.engine.records.identity import identity
from strandline.engine.results.aggregates import places_of
from strandline.engine.results.rows import last_firings, window_key
from strandline.engine.scope import Rebuild
from strandline.errors import InputError
from strandline.spec import functions
from strandline.spec.pipeline import PipelineSpec

cloudpickle.register_pickle_by_value(functions)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class ProcessedRebuild(Rebuild):
    """A rebuild whose firings hand their records to a function.

    Attributes:
        plain: the same of the pipeline as if it had no function.
        with_records: the same, its firings with the records that each of them told.
    """

    plain: Rebuild
    with_records: Rebuild

    def windows(self) -> DataFrame:
        """Those of `plain`, with what the function returned for their last firing."""
        spec = self.history.spec
        plain = self.plain.windows()
        plain = plain.withColumn("spec_fingerprint", F.lit(spec.spec_fingerprint))
        told = self._results(identity(spec, self.source_columns))
        last = told.withColumnRenamed("firing", "firings")
        last = last.select(*window_key(spec), "firings", *spec.returns)
        both = plain.join(last, [*window_key(spec), "firings"], "left")
        return both.select(*plain.columns, *spec.returns)

    def held(self) -> DataFrame:
        """Those of `plain`: the function is called as windows fire."""
        return self.plain.held()

    def accepted_by_slot(self) -> DataFrame | None:
        """Those of `plain`."""
        return self.plain.accepted_by_slot()

    def late(self) -> DataFrame:
        """Those of `plain`."""
        late = self.plain.late()
        return late.withColumn("spec_fingerprint", F.lit(self.history.spec.spec_fingerprint))

    def firings(self, identity: Column) -> DataFrame:
        """The firings, with what the function returned for each."""
        return self._results(identity)

    @cached_property
    def _results(self) -> PerIdentity:
        """The firings that are kept, each with what the function returned for it, once."""
        return PerIdentity(self._returned)

    def _returned(self, identity: Column) -> DataFrame:
        spec, rows = self.history.spec, self.with_records.firings(identity)
        kept = rows if spec.firings else last_firings(rows, spec)
        return _called(kept, spec).transform(computed)


def _called(rows: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Firings with their records as firings with what the function returns for them."""
    schema = T.StructType([field for field in rows.schema if field.name != c.OF_FIRING])
    for name, kind in spec.returns.items():
        schema.add(name, T.DataType.fromDDL(kind))
    groups = rows.groupBy(*window_key(spec), "firing")
    return groups.applyInArrow(over_firing_of(spec), schema)


def over_firing_of(spec: PipelineSpec) -> Callable[[pa.Table], pa.Table]:
    """What `applyInArrow` calls with each firing."""
    if spec.process is None or not spec.process.files:
        problem = "it has no text of the function's module"
        raise InputError(f"{spec.pipeline}: process", problem, "read it from its file")
    name, files = spec.process.name, spec.process.files
    keys: Sequence[str] = tuple(spec.source.key)
    returns, places, of_firing = dict(spec.returns), places_of(spec), c.OF_FIRING

    def records_of(firing: pa.Table) -> pa.Table:
        told = pa.Table.from_struct_array(firing[of_firing].combine_chunks().flatten())
        in_order = told.sort_by([(place, "ascending") for place in places])
        return in_order.drop_columns(places)

    def edge_ms(firing: pa.Table, edge: str) -> int:
        return int(firing[edge][0].value) // 1_000

    def over_firing(firing: pa.Table) -> pa.Table:
        found = functions.result_of(
            functions.function_of(files, name),
            {key: firing[key][0].as_py() for key in keys},
            functions.times_of(edge_ms(firing, "window_start"), edge_ms(firing, "window_end")),
            records_of(firing),
            firing["watermark_ms"][0].as_py(),
            returns,
        )
        row = firing.drop_columns([of_firing])
        for column, values in found.items():
            row = row.append_column(column, values)
        return row

    return over_firing
