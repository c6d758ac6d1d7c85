"""The calls of a user's function for firings, in a worker of the engine: Arrow in, Arrow out.

It goes to the workers by its content, for this library is not installed there: of the library it
imports `in_workers` and `functions` alone, which go with it.
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
    """What the function returns for each firing of a sorted partition.

    Args:
        rows: of the partition.
        called: of these the firings.
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
    """The firings of a sorted partition, each with the records that it holds."""
    records = pa.Table.from_struct_array(rows[calls.record])
    firings = rows[calls.firing].to_pylist()
    held = [*zip(*(rows[name].to_pylist() for name in calls.held), strict=True)]
    for begin, end in pairwise(bounds_of(rows, calls.group)):
        places = [place for place in range(begin, end) if firings[place] is None]
        in_state = _InState(places, held)
        for firing in firings[begin + len(places) : end]:
            in_state.advance(firing["number"])
            yield firing, _rows_at(records, in_state.within(firing["start_ms"], firing["end_ms"]))


class _InState:
    """The records of a group that its next firing finds in the state, by their places in order.

    A record is there from the firing `first` on, and until the firing `until`: see `Replayed`. Each
    record enters and leaves once, so that a firing costs as much as it holds.
    """

    def __init__(self, places: Iterable[int], held: Sequence[tuple[int, int, int]]) -> None:
        """Start before the first firing.

        Args:
            places: of the records of the group.
            held: of each place the event time, `first` and `until`.
        """
        self._held = held
        self._later = sorted(places, key=lambda place: held[place][1], reverse=True)
        self._places: list[int] = []
        self._first_to_leave = _NEVER

    def advance(self, number: int) -> None:
        """Go on to a firing; numbers do not decrease."""
        while self._later and self._held[self._later[-1]][1] <= number:
            place = self._later.pop()
            insort(self._places, place)
            self._first_to_leave = min(self._first_to_leave, self._held[place][2])
        if self._first_to_leave <= number:
            self._places = [place for place in self._places if self._held[place][2] > number]
            untils = (self._held[place][2] for place in self._places)
            self._first_to_leave = min(untils, default=_NEVER)

    def within(self, start_ms: int, end_ms: int) -> list[int]:
        """The records with an event time in a window."""
        return [place for place in self._places if start_ms <= self._held[place][0] < end_ms]


def _rows_at(records: pa.Table, places: Sequence[int]) -> pa.Table:
    """The rows of a table at some places; without a copy, where these follow each other."""
    if places and places[-1] - places[0] == len(places) - 1:
        return records.slice(places[0], len(places))
    return records.take(pa.array(places, pa.int64()))
