"""The names of the columns of the tables `pairs`, of interval joins and of window joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from strandline.errors import InputError
from strandline.spec.join import SIDES
from strandline.spec.pipeline import PipelineSpec

PAIR_TS = "pair_ts"
"""The later event time of a pair."""
PAIR = "pair"
"""The number of a pair among pairs of equal records, from 1."""
_OF_TABLE = (PAIR_TS, "pair_date", PAIR, "run_id", "spec_fingerprint")


def of_side(name: str, column: str) -> str:
    """The name of a column of a side's record in a pair."""
    return f"{name}_{column}"


def id_of(name: str) -> str:
    """The name of the column with the id of a side's record."""
    return of_side(name, "record_id")


def refuse_names_in_use(
    spec: PipelineSpec, columns: Mapping[str, Iterable[str]], of_window: Sequence[str] = ()
) -> None:
    """Refuse landing columns and keys whose names would occur twice among the columns of `pairs`.

    Args:
        spec: the pipeline.
        columns: the landing columns of each side.
        of_window: the columns of a pair's window.

    Raises:
        InputError: there is such a name.
    """
    in_use = {*_OF_TABLE, *of_window, *map(id_of, SIDES)}
    named = [(f"sources.left.key.{key}", key) for key in spec.source.key]
    for name in SIDES:
        place = f"sources.{name}.table"
        named += [(place, of_side(name, column)) for column in columns[name]]
    for place, column in named:
        if column.lower() in in_use:
            raise InputError(
                f"{spec.pipeline}: {place}",
                f"the table pairs would have two columns {column}",
                "rename the landing table's column, or the key",
            )
        in_use.add(column.lower())
