"""The differences between two results of a scenario, by rows and fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any

from pydantic import BaseModel

from strandline.conformance.answer import Answer, AnyAnswer, FiringRow, PairsAnswer

_CONTENT = ("count", "sum", "ids")
"""The fields that depend on a window's records."""
_NOT_COMPARED = {"seq"}
"""Sequence numbers: Flink defines no order among equal firings, so they may differ."""
_CAUSES = {"tick": 0, "record": 1, "end": 2}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A difference between two results; None: the row or field is missing on that side."""

    scenario: str
    field: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.scenario}: {self.field}: expected {self.expected}, got {self.got}"


def compare(scenario: str, expected: AnyAnswer, got: AnyAnswer) -> list[Disagreement]:
    """All differences between the expected and the actual result.

    Rows are matched by their identity (a window by key, start and end; its firings in order of
    time; a late record by id), so that a missing row is one difference. Sections and fields that
    are missing on one side are not compared. Where a known defect of Flink has lost records of a
    session, additional records are no difference.
    """
    return [Disagreement(scenario, *difference) for difference in _differences(expected, got)]


_Difference = tuple[str, Any, Any]


def _differences(expected: AnyAnswer, got: AnyAnswer) -> Iterator[_Difference]:
    for section in ("watermarks", "valve_status", "input_watermarks"):
        wanted, given = getattr(expected, section, None), getattr(got, section, None)
        if wanted is not None and given is not None:
            yield from _row_differences(section, wanted, given, key=_input)
    yield from _row_differences("late", expected.late, got.late, key=lambda row: (row.id,))
    if isinstance(expected, Answer) and isinstance(got, Answer):
        yield from _window_differences(expected, got)
    if isinstance(expected, PairsAnswer) and isinstance(got, PairsAnswer):
        yield from _row_differences(
            "pairs", expected.pairs, got.pairs, key=lambda r: (r.left, r.right)
        )
        for name in sorted(expected.buffered.keys() | got.buffered.keys()):
            wanted, given = expected.buffered.get(name, []), got.buffered.get(name, [])
            yield from _number_differences(f"buffered.{name}", wanted, given)
    if expected.final_watermark != got.final_watermark:
        yield "final_watermark", expected.final_watermark, got.final_watermark


def _window_differences(expected: Answer, got: Answer) -> Iterator[_Difference]:
    flink_lost = expected.flink_defect
    fired, fired_here = _in_order(expected.firings), _in_order(got.firings)
    yield from _row_differences("firings", fired, fired_here, key=_window, flink_lost=flink_lost)
    yield from _number_differences("no_window", expected.no_window, got.no_window)
    for section in ("final", "open_at_end"):
        wanted, given = getattr(expected, section), getattr(got, section)
        yield from _row_differences(section, wanted, given, key=_window, flink_lost=flink_lost)
    if expected.then is None or got.then is None:
        return
    then, then_here = _then(expected), _then(got)
    for section in then:
        key = _result if section == "then.late" else _window
        yield from _row_differences(section, then[section], then_here[section], key=key)


def _then(answer: Answer) -> dict[str, list[Any]]:
    """The rows of second windows, with input results named by key, window and number.

    Firings of one watermark with equal ends have no order, so their sequence numbers are replaced.
    """
    names: dict[Any, str] = {}
    for _, group in groupby(sorted(_in_order(answer.firings), key=_window), key=_window):
        for number, row in enumerate(group, start=1):
            names[row.seq] = f"{row.key} [{row.start}, {row.end}) #{number}"

    def named(row: Any) -> Any:
        if hasattr(row, "seqs"):
            seqs = sorted(names.get(seq, f"no firing {seq}") for seq in row.seqs)
            return row.model_copy(update={"seqs": seqs})
        return row.model_copy(update={"seq": names.get(row.seq, f"no firing {row.seq}")})

    then = answer.then
    if then is None:
        return {}
    return {
        "then.firings": [named(row) for row in _in_order(then.firings)],
        "then.late": [named(row) for row in then.late],
        "then.open_at_end": [named(row) for row in then.open_at_end],
    }


def _number_differences(
    section: str, expected: Sequence[int], got: Sequence[int]
) -> Iterator[_Difference]:
    for number in sorted(set(expected) ^ set(got)):
        wanted = number if number in expected else None
        yield f"{section}[{number}]", wanted, number if wanted is None else None


def _in_order(rows: Sequence[FiringRow]) -> list[FiringRow]:
    return sorted(rows, key=_order_of_firing)


def _order_of_firing(row: FiringRow) -> tuple[int, ...]:
    times = (-1 if t is None else t for t in (row.after_record_id, row.timer, row.end, row.start))
    after, *window = times
    return (row.arrival_ms, _CAUSES[row.cause], after, row.watermark, *window)


def _window(row: Any) -> tuple[Any, ...]:
    return (row.key, row.start, row.end)


def _result(row: Any) -> tuple[Any, ...]:
    return (row.seq,)


def _input(row: Any) -> tuple[Any, ...]:
    return () if row.input is None else (row.input,)


def _row_differences(
    section: str,
    expected: Sequence[BaseModel],
    got: Sequence[BaseModel],
    *,
    key: Callable[[Any], tuple[Any, ...]],
    flink_lost: bool = False,
) -> Iterator[_Difference]:
    wanted, given = _grouped(expected, key), _grouped(got, key)
    for identity in sorted(wanted.keys() | given.keys()):
        pairs = zip_longest(wanted.get(identity, []), given.get(identity, []))
        for number, (one, other) in enumerate(pairs):
            place = f"{section}[{', '.join(str(part) for part in identity) or number}]"
            if number and identity:
                place += f" #{number + 1}"
            yield from _field_differences(place, one, other, flink_lost=flink_lost)


def _grouped(
    rows: Sequence[BaseModel], key: Callable[[Any], tuple[Any, ...]]
) -> dict[tuple[Any, ...], list[BaseModel]]:
    return {identity: list(group) for identity, group in groupby(sorted(rows, key=key), key=key)}


def _field_differences(
    place: str, expected: BaseModel | None, got: BaseModel | None, *, flink_lost: bool
) -> Iterator[_Difference]:
    if expected is None or got is None:
        wanted, given = (row and row.model_dump(exclude_unset=True) for row in (expected, got))
        yield place, wanted, given
        return
    ids, more_ids = ({*(getattr(row, "ids", None) or ())} for row in (expected, got))
    if flink_lost and ids < more_ids:
        got = got.model_copy(update={field: getattr(expected, field) for field in _CONTENT})
    in_both = expected.model_fields_set & got.model_fields_set
    for field in type(expected).model_fields:
        wanted, given = getattr(expected, field), getattr(got, field)
        if wanted != given and field in in_both - _NOT_COMPARED:
            yield f"{place}.{field}", wanted, given
