"""The figures of an expectation as one line of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pandas as pd

from strandline.errors import telling_line
from strandline.model.books import Book, books_off
from strandline.model.intervals import text_of
from strandline.visible import number_of

_EXAMPLES = 3
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Gaps:
    """The number of slots without records, and the first of them.

    Attributes:
        count: the number of slots, including slots that are not listed.
        examples: the first gaps, each a single slot or several slots in a row.
        shown: the number of slots in the examples.
        last: the end of the last listed gap; None: none is listed.
        known: the number of further slots, whose gaps somebody has acknowledged.
    """

    count: int
    examples: Sequence[Any] = ()
    shown: int = 0
    last: Any = None
    known: int = 0

    @classmethod
    def of(cls, listed: pd.DataFrame, count: int | None = None, known: int = 0) -> Gaps:
        """The gaps in rows of `completeness`; slots in a row are one example.

        An example is `2013-01-05T03:00:00Z to 2013-01-05T06:00:00Z (3 slots)`.

        Args:
            listed: the listed gaps: `slot_start`, `slot_end` and, if a row may stand for several
                slots, `slots`.
            count: the number of slots; None: there are no others than the listed ones. It is less
                than that of the listed ones if a row is only in part in the range.
            known: the number of further slots, whose gaps somebody has acknowledged.
        """
        if listed.empty:
            return cls(count or 0, known=known)
        in_order = listed.sort_values(["slot_start", "slot_end"])
        slots = in_order["slots"] if "slots" in in_order else pd.Series(1, index=in_order.index)
        slots = slots.astype("Int64").fillna(1)
        is_next = in_order["slot_start"] <= in_order["slot_end"].cummax().shift()
        first = (
            in_order.assign(slots=slots)
            .groupby((~is_next).cumsum())
            .agg({"slot_start": "first", "slot_end": "max", "slots": "sum"})
            .head(_EXAMPLES)
        )
        examples = [
            start if many == 1 else f"{shown(start)} to {shown(end)} ({many:,} slots)"
            for start, end, many in first.itertuples(index=False)
        ]
        of_listed = int(slots.sum()) if count is None else count
        last = in_order["slot_end"].max()
        return cls(of_listed, examples, int(first["slots"].sum()), last, known)

    def __str__(self) -> str:
        """The gaps, as `5 gaps: 2013-01-05T03:00:00Z; …; and 2 more, up to 2013-01-07T11:00`."""
        known = f"; {self.known:,} acknowledged" if self.known else ""
        if not self.count:
            return f"no other gap{known}" if known else "no gap"
        text, more = number_of(self.count, "gap"), self.count - self.shown
        if more < 0:  # a row of many gaps is listed whole
            text += ", in whole or in part in"
        text += _examples(map(shown, self.examples))
        if more > 0 and self.last is not None:
            text += f"; and {more:,} more, up to {shown(self.last)}"
        return text + known


@dataclass(frozen=True, slots=True)
class RangeFigures:
    """The counts of a run's range that its expectations are about.

    Attributes:
        accepted: records accepted into their newest window.
        late: records that are late.
        gaps: its empty slots after the first slot that accepted a record.
        slots_expected: the number of slots in the day map, of the first and last record of a date.
        slots_missing: the starts of expected slots that are not in `completeness`.
        max_late_share: the largest late share that the spec allows; None: any.
    """

    accepted: int
    late: int
    gaps: Gaps
    slots_expected: int
    slots_missing: Sequence[int]
    max_late_share: float | None

    @property
    def late_share(self) -> float | None:
        """`late / (accepted + late)`; None if there is neither."""
        evaluated = self.accepted + self.late
        return self.late / evaluated if evaluated else None

    @property
    def of_late_share(self) -> str:
        """The late share and its limit, as `late share 0.031 (310 of 10,000) > 0.02`."""
        share, limit = self.late_share, self.max_late_share
        if share is None or limit is None:
            return "no record in the range"
        of_records, compared = beside_limit(share, limit)
        counts = f"{self.late:,} of {self.accepted + self.late:,}"
        return f"late share {of_records} ({counts}) {compared}"

    @property
    def of_slots(self) -> str:
        """The slots with a row, as `399 of 400 slots in which records were seen; missing: …`."""
        found = self.slots_expected - len(self.slots_missing)
        counts = f"{found:,} of {self.slots_expected:,} slots in which records were seen"
        missing = [text_of(start_ms) for start_ms in self.slots_missing[:_EXAMPLES]]
        return f"{counts}; missing: {', '.join(missing)}" if missing else counts


def beside_limit(share: float, limit: float) -> tuple[str, str]:
    """A share, and how it compares with a limit: `0.031` and `> 0.02`.

    With three digits, or all of them where three would hide which of the two is larger.
    """
    over = share > limit
    text, allowed = f"{share:.3g}", f"{limit:.3g}"
    if over and float(text) <= float(allowed):
        text, allowed = repr(share), repr(limit)
    return text, f"{'>' if over else '≤'} {allowed}"


def of_removals(removed: int, published: int, max_share: float) -> str:
    """The share of removed windows and its limit, as `3 of 4 published windows go (0.75) > 0.5`."""
    share, compared = beside_limit(removed / published, max_share)
    return f"{removed:,} of {published:,} published windows go ({share}) {compared}"


def of_books(books: Sequence[Book]) -> str:
    """The number of books that balance, and the figures of books that do not."""
    off = books_off(books)
    if not off:
        return f"{number_of(len(books), 'book')} {'balances' if len(books) == 1 else 'balance'}"
    return f"{len(off):,} of {number_of(len(books), 'book')} off" + _examples(off)


def of_result(
    result: Mapping[str, Any], arguments: Mapping[str, Any], row_id: Sequence[str]
) -> str:
    """The figures of an expectation of Great Expectations.

    Args:
        result: the `result` of its validation result.
        arguments: the expectation's arguments, which come first in the text.
        row_id: the columns that name a row, which come first in an offending row.
    """
    called = ", ".join(f"{name} {shown(value)}" for name, value in arguments.items())
    observed = _observed(result, row_id)
    return f"{called}: {observed}" if called else observed


def of_exception(message: str) -> str:
    """The figures of an expectation that could not be evaluated."""
    return f"could not be evaluated: {telling_line(message)[:300] or 'unknown reason'}"


def shown(value: Any) -> str:
    """A value as text: instants in ISO-8601, numbers with thousands separators."""
    if value is None or value != value:  # noqa: PLR0124 - NaN and NaT differ from themselves
        return "null"
    if isinstance(value, datetime):
        # Spark collects timestamps as naive datetimes of the machine's own zone
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    text = str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _observed(result: Mapping[str, Any], row_id: Sequence[str]) -> str:
    if "unexpected_count" in result:
        return _of_rows(result, row_id)
    if "observed_value" not in result:
        return "no figures"
    offending = result.get("details") or {}
    rows = offending.get("unexpected_rows") if isinstance(offending, Mapping) else None
    if rows is not None:
        return _of_offenders(result["observed_value"], rows)
    value = result["observed_value"]
    if value is None:
        missing = offending.get("missing") or offending.get("mismatched") if offending else None
        return f"missing {shown(missing)}" if missing else "nothing observed"
    return f"observed {shown(value)}"


def _of_offenders(count: int, rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "no offending row"
    shorter = ({name: row[name] for name in row if name != "offenders"} for row in rows)
    return number_of(count, "offending row") + _examples(map(_row, shorter))


def _of_rows(result: Mapping[str, Any], row_id: Sequence[str]) -> str:
    count, total = result["unexpected_count"] or 0, result.get("element_count") or 0
    if not count:
        return number_of(total, "row")
    rows = result.get("partial_unexpected_index_list")
    examples = (
        [_row({**{name: row.get(name) for name in row_id}, **row}) for row in rows]
        if rows
        else map(shown, result.get("partial_unexpected_list", ()))
    )
    return f"{count:,} of {number_of(total, 'row')}" + _examples(examples)


def _row(row: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={shown(value)}" for name, value in row.items())


def _examples(texts: Iterable[str]) -> str:
    found = list(texts)[:_EXAMPLES]
    return ": " + "; ".join(found) if found else ""
