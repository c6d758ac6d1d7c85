"""Where two answers to a scenario disagree, row by row and field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any

from pydantic import BaseModel

from strandline.conformance.answer import Answer, FiringRow

_CONTENT = ("count", "sum", "ids")
_CAUSES = {"tick": 0, "record": 1, "end": 2}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One thing that the two answers tell differently; None: there is nothing on that side."""

    scenario: str
    field: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.scenario}: {self.field}: expected {self.expected}, got {self.got}"


def compare(scenario: str, expected: Answer, got: Answer) -> list[Disagreement]:
    """Every disagreement between the expected answer and the one that was got.

    Rows are matched by what they are about (a window by key, start and end; its firings among each
    other in the order of their moments; a late record by id), so that one missing row is one
    disagreement. Sections and ids that one side does not tell are not compared. Where Flink's
    known defect has lost records of a session, more of them is no disagreement.
    """
    return [Disagreement(scenario, *difference) for difference in _differences(expected, got)]


_Difference = tuple[str, Any, Any]


def _differences(expected: Answer, got: Answer) -> Iterator[_Difference]:
    for section in ("watermarks", "valve_status"):
        wanted, given = getattr(expected, section), getattr(got, section)
        if wanted is not None and given is not None:
            yield from _rows(section, wanted, given, about=lambda _: ())
    fired = sorted(expected.firings, key=_order_of_firing)
    fired_here = sorted(got.firings, key=_order_of_firing)
    lost = expected.flink_defect
    yield from _rows("firings", fired, fired_here, about=_window, lost=lost)
    yield from _rows("late", expected.late, got.late, about=lambda row: (row.id,))
    for record_id in sorted(set(expected.no_window) ^ set(got.no_window)):
        wanted = record_id if record_id in expected.no_window else None
        yield f"no_window[{record_id}]", wanted, record_id if wanted is None else None
    for section in ("final", "open_at_end"):
        wanted, given = getattr(expected, section), getattr(got, section)
        yield from _rows(section, wanted, given, about=_window, lost=lost)
    if expected.final_watermark != got.final_watermark:
        yield "final_watermark", expected.final_watermark, got.final_watermark


def _order_of_firing(row: FiringRow) -> tuple[int, ...]:
    after = -1 if row.after_record_id is None else row.after_record_id
    return (row.arrival_ms, _CAUSES[row.cause], after, row.watermark, row.end, row.start)


def _window(row: Any) -> tuple[Any, ...]:
    return (row.key, row.start, row.end)


def _rows(
    section: str,
    expected: Sequence[BaseModel],
    got: Sequence[BaseModel],
    *,
    about: Callable[[Any], tuple[Any, ...]],
    lost: bool = False,
) -> Iterator[_Difference]:
    wanted, given = _grouped(expected, about), _grouped(got, about)
    for subject in sorted(wanted.keys() | given.keys()):
        pairs = zip_longest(wanted.get(subject, []), given.get(subject, []))
        for number, (one, other) in enumerate(pairs):
            place = f"{section}[{', '.join(str(part) for part in subject) or number}]"
            if number and subject:
                place += f" #{number + 1}"
            yield from _fields(place, one, other, lost=lost)


def _grouped(
    rows: Sequence[BaseModel], about: Callable[[Any], tuple[Any, ...]]
) -> dict[tuple[Any, ...], list[BaseModel]]:
    return {subject: list(group) for subject, group in groupby(sorted(rows, key=about), key=about)}


def _fields(
    place: str, one: BaseModel | None, other: BaseModel | None, *, lost: bool
) -> Iterator[_Difference]:
    if one is None or other is None:
        yield place, one and one.model_dump(), other and other.model_dump()
        return
    kept = {*(getattr(one, "ids", None) or ())}
    if lost and kept < {*(getattr(other, "ids", None) or ())}:
        other = other.model_copy(update={field: getattr(one, field) for field in _CONTENT})
    for field in type(one).model_fields:
        wanted, given = getattr(one, field), getattr(other, field)
        if wanted != given and not (field == "ids" and (wanted is None or given is None)):
            yield f"{place}.{field}", wanted, given
