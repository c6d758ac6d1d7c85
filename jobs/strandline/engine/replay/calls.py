"""The calls of a user's function for firings, in a worker of the engine: Arrow in, Arrow out.

The module is shipped to the workers as text, since this library is not installed there. Of the
library it imports `in_workers` and `functions` alone, which are shipped with it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from strandline.engine.replay.in_workers import bounds_of, in_order
from strandline.spec import functions

_NUMBER = "_strandline_number"
_NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Calls:
    """A user's function, and the columns of a partition that its calls read.

    A partition has rows of records and rows of firings. A record has a null `firing`; in a firing
    all other columns but `keys` and `group` are null, so firings sort after the records of their
    group.

    Attributes:
        function: the name of the function.
        files: the text of its module and of the modules that belong to it.
        returns: the columns that it returns, with their types.
        keys: the columns of the keys, by the names of the keys.
        group: the columns that identify a group.
        order: the columns that order the records of a group.
        lifetime: the columns of a record's event time, the first firing that contains it, and the
            first one after that which no longer does. Only firings of windows that cover the
            event time count.
        record: the column with the landed record.
        firing: a struct of `number`, `start_ms`, `end_ms` and `watermark_ms`; null: the row is a
            record.
    """

    function: str
    files: Mapping[str, str]
    returns: Mapping[str, str]
    keys: Mapping[str, str]
    group: tuple[str, ...]
    order: tuple[str, ...]
    lifetime: tuple[str, str, str]
    record: str
    firing: str


def call_partition(batches: Iterable[pa.RecordBatch], calls: Calls) -> Iterator[pa.RecordBatch]:
    """The firings of a partition, each with the function's result.

    Args:
        batches: all rows of the partition, in any order; `mapInArrow` gives them.
        calls: how the function is called.

    Raises:
        ProcessError: the function fails, or returns something else than declared.
    """
    parts = [batch for batch in batches if batch.num_rows]
    if not parts:
        return
    rows = pa.Table.from_batches(parts)
    rows = rows.append_column(_NUMBER, pc.struct_field(rows[calls.firing], "number"))
    rows = in_order(rows, [*calls.group, *calls.order, _NUMBER]).combine_chunks()
    called = rows.filter(rows[calls.firing].is_valid())
    found: dict[str, list[pa.Array]] = {name: [] for name in calls.returns}
    for result in _results(rows, called, calls):
        for name, value in result.items():
            found[name].append(value)
    called = called.select([*calls.keys.values(), calls.firing])
    for name, values in found.items():
        kind = functions.arrow_type(calls.returns[name])
        called = called.append_column(name, pa.chunked_array(values, kind))
    yield from called.combine_chunks().to_batches()


def _results(rows: pa.Table, called: pa.Table, calls: Calls) -> Iterator[dict[str, pa.Array]]:
    """The function's result for each firing of a sorted partition.

    Args:
        rows: the rows of the partition.
        called: the firings among them.
        calls: how the function is called.
    """
    own = called.select([*calls.keys.values()]).rename_columns([*calls.keys])
    keys = own.to_pylist() if calls.keys else [{}] * called.num_rows
    function = functions.function_of(calls.files, calls.function)
    for key, (firing, members) in zip(keys, _fired(rows, calls), strict=True):
        window = functions.times_of(firing["start_ms"], firing["end_ms"])
        yield functions.result_of(
            function, key, window, members, firing["watermark_ms"], calls.returns
        )


def _fired(rows: pa.Table, calls: Calls) -> Iterator[tuple[dict[str, int], pa.Table]]:
    """The firings of a sorted partition, each with its records."""
    records = pa.Table.from_struct_array(rows[calls.record])
    firings = rows[calls.firing].to_pylist()
    lifetime = [*zip(*(rows[name].to_pylist() for name in calls.lifetime), strict=True)]
    for begin, end in pairwise(bounds_of(rows, calls.group)):
        places = [place for place in range(begin, end) if firings[place] is None]
        in_state = _InState(places, lifetime)
        for firing in firings[begin + len(places) : end]:
            in_state.advance(firing["number"])
            yield firing, _rows_at(records, in_state.within(firing["start_ms"], firing["end_ms"]))


class _InState:
    """The records in state at a firing of a group, by their places (indices in order of arrival).

    A record is in state from the firing `first` on, until the firing `until`: see `Replayed`. Each
    record enters and leaves once, so the cost of a firing grows only with its own records.
    """

    def __init__(self, places: Iterable[int], lifetime: Sequence[tuple[int, int, int]]) -> None:
        """Start before the first firing.

        Args:
            places: the places of the group's records.
            lifetime: the event time, `first` and `until` of each place.
        """
        self._lifetimes = lifetime
        self._later = sorted(places, key=lambda place: lifetime[place][1], reverse=True)
        self._places: list[int] = []
        self._first_to_leave = _NEVER

    def advance(self, number: int) -> None:
        """Advance to a firing; numbers do not decrease."""
        while self._later and self._lifetimes[self._later[-1]][1] <= number:
            place = self._later.pop()
            insort(self._places, place)
            self._first_to_leave = min(self._first_to_leave, self._lifetimes[place][2])
        if self._first_to_leave <= number:
            self._places = [place for place in self._places if self._lifetimes[place][2] > number]
            untils = (self._lifetimes[place][2] for place in self._places)
            self._first_to_leave = min(untils, default=_NEVER)

    def within(self, start_ms: int, end_ms: int) -> list[int]:
        """The records in state with an event time in a window, by their places."""
        return [place for place in self._places if start_ms <= self._lifetimes[place][0] < end_ms]


def _rows_at(records: pa.Table, places: Sequence[int]) -> pa.Table:
    """The rows of a table at some places; consecutive rows are not copied."""
    if places and places[-1] - places[0] == len(places) - 1:
        return records.slice(places[0], len(places))
    return records.take(pa.array(places, pa.int64()))
