"""The run of a pipeline's test by the reference, and the comparison with the expected rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from strandline.errors import InputError
from strandline.model.intervals import (
    END_OF_INSTANTS_MS,
    LEAST_INSTANT_MS,
    datetime_of,
    midnight_before,
)
from strandline.reference.replay import replay
from strandline.reference.tables import Tables, WindowRow
from strandline.spec.pipeline import PipelineSpec
from strandline.trial.aggregates import Aggregate, aggregate
from strandline.trial.file import SampleTest
from strandline.trial.rows import Read, read_rows
from strandline.trial.values import ThrownError, plain, to_time

_CLOSE_ENOUGH = 1e-9


@dataclass(frozen=True)
class Difference:
    """A row that is not as expected.

    Attributes:
        table: `windows` or `quarantine`.
        row: the columns that identify the row.
        columns: the expected and the actual value of each differing column.
        what: `missing`, `unexpected` or `different`.
    """

    table: str
    row: Mapping[str, Any]
    what: str
    columns: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The difference as a JSON document."""
        columns = {
            name: plain({"expected": expected, "came": came})
            for name, (expected, came) in self.columns.items()
        }
        return {"table": self.table, "what": self.what, "row": plain(self.row), "columns": columns}


@dataclass(frozen=True)
class Result:
    """The result of a test.

    Attributes:
        windows: all actual windows.
        quarantine: all rows that no window accepted, by number and reason.
        differences: the rows that are not as expected; the test passes if there are none.
    """

    windows: list[dict[str, Any]]
    quarantine: list[dict[str, Any]]
    differences: list[Difference]

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON document."""
        return {
            "passed": not self.differences,
            "differences": [one.to_json() for one in self.differences],
            "windows": [plain(row) for row in self.windows],
            "quarantine": self.quarantine,
        }


def run_test(spec: PipelineSpec, test: SampleTest) -> Result:
    """Run a pipeline over its sample rows, and compare.

    Raises:
        InputError: tests do not support the pipeline, or one of its expressions.
    """
    _require_computed(spec)
    read = read_rows(spec, test.rows)
    windows, quarantine = _windows_and_quarantine(spec, test, read)
    identity = ["window_start", *spec.source.key]
    differences = _compared("windows", identity, test.expect.windows, windows)
    if test.expect.quarantine is not None:
        differences += _compared("quarantine", ["row"], test.expect.quarantine, quarantine)
    return Result(windows, quarantine, differences)


def _require_computed(spec: PipelineSpec) -> None:
    refused = {
        "sources": "two sources" if spec.has_two_sources else "",
        "source.pipeline": "results of another pipeline" if spec.reads_results_of else "",
        "process": "a function" if spec.process is not None else "",
    }
    for place, what in refused.items():
        if what:
            raise InputError(
                f"{spec.pipeline}: {place}",
                f"strandline test does not compute {what}",
                "try the pipeline with strandline plan, over a small landing table",
            )


def _windows_and_quarantine(
    spec: PipelineSpec, test: SampleTest, read: Read
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    arrivals = [record.arrival_ms for record in read.records]
    start_ms = spec.source.start
    if start_ms is None:
        start_ms = midnight_before(min(arrivals)) if arrivals else 0
    replayed = replay(
        spec, read.records, start_ms=start_ms, horizon_ms=test.as_of, end_of_input=test.close
    )
    tables = Tables(spec, replayed)
    contents = {
        name: aggregate(text, f"{spec.pipeline}: aggregates.{name}")
        for name, text in spec.aggregates.items()
    }
    windows = [_window(spec, row, contents) for row in tables.windows()]
    refused = {
        **read.refused,
        **{int(row.record.record_id): row.reason for row in tables.quarantine()},
    }
    return windows, [{"row": number, "reason": refused[number]} for number in sorted(refused)]


def _window(
    spec: PipelineSpec, row: WindowRow, contents: Mapping[str, Aggregate]
) -> dict[str, Any]:
    members = [record.payload for record in row.members]
    found: dict[str, Any] = {
        "window_start": datetime_of(max(row.window.start_ms, LEAST_INSTANT_MS)),
        "window_end": datetime_of(min(row.window.end_ms, END_OF_INSTANTS_MS - 1)),
        **dict(zip(spec.source.key, row.key, strict=True)),
    }
    for name, of in contents.items():
        try:
            found[name] = of(members)
        except ThrownError as error:
            place = f"{spec.pipeline}: aggregates.{name}"
            raise InputError(place, str(error), "correct the rows, or the expression") from None
    return found | {
        "records": len(members),
        "late_accepted": row.late_accepted,
        "firings": row.firings,
        "state": row.state,
    }


def _compared(
    table: str,
    identity: Sequence[str],
    expected: Sequence[Mapping[str, Any]],
    came: Sequence[Mapping[str, Any]],
) -> list[Difference]:
    """The differences between expected and actual rows, in the order of the actual rows."""
    missing, unexpected = [], [*came]
    different = []
    for row in expected:
        _require_named(table, identity, row, came)
        given = {name: row[name] for name in identity if name in row}
        same = next((one for one in unexpected if not _changed(given, one)), None)
        if same is None:
            missing.append(Difference(table, row, "missing"))
            continue
        unexpected.remove(same)
        if columns := _changed(row, same):
            different.append(Difference(table, _named(same, identity), "different", columns))
    others = (_named(one, identity) for one in unexpected)
    return [*different, *missing, *(Difference(table, one, "unexpected") for one in others)]


def _named(row: Mapping[str, Any], identity: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in identity}


def _changed(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The expected and the actual value of each column in which a row differs."""
    return {n: (v, actual[n]) for n, v in expected.items() if not _equal(v, actual[n])}


def _require_named(
    table: str,
    identity: Sequence[str],
    row: Mapping[str, Any],
    came: Sequence[Mapping[str, Any]],
) -> None:
    absent = [name for name in identity if name not in row]
    unknown = [name for name in row if came and name not in came[0]]
    if absent or unknown:
        problem = f"without {absent[0]}" if absent else f"{unknown[0]!r} is not a column of it"
        known = f"its columns are {', '.join(came[0])}" if unknown else "add it"
        raise InputError(f"expect.{table}", f"{dict(row)}: {problem}", known)


def _equal(expected: Any, came: Any) -> bool:
    if isinstance(came, datetime):
        try:
            return to_time(expected) == came
        except (ValueError, OverflowError, TypeError):
            return False
    if isinstance(came, date) and not isinstance(expected, date):
        return str(expected) == came.isoformat()
    numbers = isinstance(expected, int | float) and isinstance(came, int | float)
    if numbers and not (isinstance(expected, bool) or isinstance(came, bool)):
        return math.isclose(expected, came, rel_tol=_CLOSE_ENOUGH, abs_tol=0.0)
    return type(expected) is type(came) and bool(expected == came)
