"""The rows of two landing tables in one: columns of one name are one column."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine.frames import with_nulls_for
from strandline.errors import InputError
from strandline.spec.pipeline import PipelineSpec
from strandline.tables import INPUT


def side_by_side(rows: Mapping[str, DataFrame], spec: PipelineSpec) -> DataFrame:
    """The rows of both inputs, each with its INPUT; a column that one lacks is null there.

    Raises:
        InputError: there are columns of one name that no one column can hold.
    """
    known: dict[str, str] = {}
    for name, of_input in rows.items():
        place = f"{spec.pipeline}: sources.{name}.table"
        for field in of_input.schema.fields:
            if field.name.lower() == INPUT:
                problem = f"its column {field.name} has the name of ours that tells the source"
                raise InputError(place, problem, "rename it there")
            own = f"{field.name} ({field.dataType.simpleString()})"
            other = known.setdefault(field.name.lower(), own)
            if own != other:
                problem = f"its column {own} stands beside {other} of the left source"
                raise InputError(place, problem, "give both one name and type, or two names")
    left, right = (of_input.withColumn(INPUT, F.lit(name)) for name, of_input in rows.items())
    return with_nulls_for(right, left).unionByName(with_nulls_for(left, right))
