"""The calls of a user's function for firings, in a worker of the engine: Arrow in, Arrow out.

It goes to the workers by its content, for this library is not installed there: of the library it
imports `in_workers` and `functions` alone, which go with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from strandline.engine.replay.in_workers import bounds_of, in_order
from strandline.spec import functions


@dataclass(frozen=True, slots=True)
class Calls:
    """What a function is called with, by the columns of a partition.

    The rows of a partition are records and firings: of records `firing` is null, of firings all
    else is but `keys` and `group`. So these are behind the records of their group.

    Attributes:
        function: the name of the function.
        files: the text of its module, and of all that belongs to it.
        returns: the columns that it returns, with their types.
        keys: of the keys, by their names.
        group: identify a group.
        order: order the records of a group.
        held: of a record its event time, and from which firing until which one windows that cover
            this hold it.
        record: a record as it has landed.
        firing: a struct of `number`, `start_ms`, `end_ms` and `watermark_ms`; null: the row is a
            record.
    """

    function: str
    files: Mapping[str, str]
    returns: Mapping[str, str]
    keys: Mapping[str, str]
    group: tuple[str, ...]
    order: tuple[str, ...]
    held: tuple[str, str, str]
    record: str
    firing: str


def call_partition(batches: Iterable[pa.RecordBatch], calls: Calls) -> Iterator[pa.RecordBatch]:
    """Call a function for each firing of a partition: its row, and what the function returns.

    Args:
        batches: all rows of the partition, in any order; `mapInArrow` gives them.
        calls: how they are called.

    Raises:
        ProcessError: the function fails, or returns something else than it says.
    """
    parts = [batch for batch in batches if batch.num_rows]
    if not parts:
        return
    rows = in_order(pa.Table.from_batches(parts), [*calls.group, *calls.order]).combine_chunks()
    called = rows.filter(rows[calls.firing].is_valid())
    own = called.select([*calls.keys.values()]).rename_columns([*calls.keys])
    keys = own.to_pylist() if calls.keys else [{}] * called.num_rows
    function = functions.function_of(calls.files, calls.function)
    found: dict[str, list[pa.Array]] = {name: [] for name in calls.returns}
    asked = zip(keys, _fired(rows, calls), strict=True)
    for key, (firing, members) in asked:
        result = functions.result_of(
            function,
            key,
            functions.times_of(firing["start_ms"], firing["end_ms"]),
            members,
            firing["watermark_ms"],
            calls.returns,
        )
        for name, value in result.items():
            found[name].append(value)
    called = called.select([*calls.keys.values(), calls.firing])
    for name, values in found.items():
        kind = functions.arrow_type(calls.returns[name])
        called = called.append_column(name, pa.chunked_array(values, kind))
    yield from called.combine_chunks().to_batches()


def _fired(rows: pa.Table, calls: Calls) -> Iterator[tuple[dict[str, int], pa.Table]]:
    """The firings of a sorted partition, each with the records that it holds."""
    records = pa.Table.from_struct_array(rows[calls.record])
    firings = rows[calls.firing].to_pylist()
    held = [*zip(*(rows[name].to_pylist() for name in calls.held), strict=True)]
    for begin, end in pairwise(bounds_of(rows, calls.group)):
        places = [place for place in range(begin, end) if firings[place] is None]
        for firing in firings[begin + len(places) : end]:
            members = [place for place in places if _holds(firing, *held[place])]
            yield firing, _rows_at(records, members)


def _holds(firing: Mapping[str, int], ts_ms: int, first: int, until: int) -> bool:
    """Whether a firing holds a record: see `Replayed`."""
    if not firing["start_ms"] <= ts_ms < firing["end_ms"]:
        return False
    return first <= firing["number"] < until


def _rows_at(records: pa.Table, places: Sequence[int]) -> pa.Table:
    """The rows of a table at some places; without a copy, where these follow each other."""
    if places and places[-1] - places[0] == len(places) - 1:
        return records.slice(places[0], len(places))
    return records.take(pa.array(places, pa.int64()))
