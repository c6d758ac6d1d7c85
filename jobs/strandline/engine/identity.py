"""What tells one landed row from another, whatever the file that it lies in."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.source import quoted
from strandline.spec.pipeline import PipelineSpec

_EXACT_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}


def identity(spec: PipelineSpec, source_columns: Sequence[str]) -> Column:
    """A hash of what identifies a record: `source.id` (default: the whole row) and its arrival."""
    arrival = F.coalesce(F.col(c.ARRIVAL).cast("string"), F.lit(""))
    identifying = F.concat_ws("|", _json(spec.source.id or source_columns), arrival)
    return F.substring(F.sha2(identifying, 256), 1, 32)


def content(source_columns: Sequence[str]) -> Column:
    """A hash of a whole row: an order among rows that are equal in all that counts."""
    return F.sha2(_json(source_columns), 256)


def _json(names: Sequence[str]) -> Column:
    return F.to_json(F.struct(*(quoted(name) for name in names)), _EXACT_JSON)
