"""`max_malformed_share`: how many of the rows of a run's arrival days are malformed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from strandline.quality.figures import percent
from strandline.quality.findings.check import Check
from strandline.spec.quality import DEFAULT, Quality

_WARN_ABOVE = 0.05
_FAIL_ABOVE = 0.9
_NAME = "max_malformed_share"
_REASONS_SHOWN = 3


@dataclass(frozen=True)
class RowsOfDay:
    """The rows of an arrival day, as they were observed.

    Attributes:
        well_formed: how many can be read.
        malformed: how many cannot, by reason.
        within_a_date: whether each row that can be read has its event on the arrival date itself.
    """

    well_formed: int = 0
    malformed: Mapping[str, int] = field(default_factory=dict)
    within_a_date: bool = True

    @property
    def bad(self) -> int:
        """The malformed rows."""
        return sum(self.malformed.values())

    @property
    def rows(self) -> int:
        """All rows."""
        return self.well_formed + self.bad


def checks_of_malformed(
    quality: Quality, days: Mapping[date, RowsOfDay], judged: Sequence[date], dateless: RowsOfDay
) -> Iterator[Check]:
    """How many of the rows of some arrival days are malformed, held against the limits.

    Args:
        quality: names the limits: by default a warning above 0.05, and critical above 0.9.
        days: the rows of every arrival day that is known.
        judged: the days that are judged.
        dateless: the rows without an arrival day that are judged with them.
    """
    limits = quality.max_malformed_share
    if limits is None:
        return
    parts = [*(days[day] for day in judged if day in days), dateless]
    rows = sum(part.rows for part in parts)
    reasons: dict[str, int] = {}
    for part in parts:
        for reason, count in part.malformed.items():
            reasons[reason] = reasons.get(reason, 0) + count
    of_days = _named(judged)
    for of, bad, limit, critical in _limits(limits, reasons, rows):
        share = bad / rows if rows else None
        sentence = "no row in the run's arrival days"
        if share is not None:
            many = (
                f"{percent(bad, rows)} of rows malformed"
                if not of
                else f"{of} {percent(bad, rows)}"
            )
            sentence = f"{many} ({bad:,} of {rows:,}{_by_reason(reasons, of)}){of_days}"
            if share > limit:
                sentence += f", above {limit:g}{_since(days, judged, of, limit)}"
        yield Check(_NAME, "critical" if critical else "warning", share, limit, sentence, of)


def looks_like_event_date(days: Mapping[date, RowsOfDay], judged: Sequence[date]) -> str | None:
    """Why the column of arrival dates looks like one of event dates; None: it does not.

    Rows lie outside their partition, and each of those that do not has its event on that very date:
    a row is put outside by crossing midnight on its way.
    """
    parts = [days[day] for day in judged if day in days]
    outside = sum(part.malformed.get("arrival_outside_partition", 0) for part in parts)
    if not outside or not all(part.within_a_date for part in parts):
        return None
    return (
        f"{outside:,} rows are arrival_outside_partition, and every other row has its event on its "
        "arrival_date: the column looks like the event's day; name in source.arrival_date one of "
        "the day that the row arrived on, or write null"
    )


def _limits(
    limits: float | Mapping[str, float] | str, reasons: Mapping[str, int], rows: int
) -> Iterator[tuple[str, int, float, bool]]:
    """A reason (empty: all), its malformed rows, the share that is allowed, whether it blocks."""
    bad = sum(reasons.values())
    if isinstance(limits, float):
        yield "", bad, limits, True
        return
    too_many = bad > _FAIL_ABOVE * rows
    yield "", bad, _FAIL_ABOVE if too_many else _WARN_ABOVE, too_many
    if limits != DEFAULT and not isinstance(limits, str):
        for reason, limit in limits.items():
            yield reason, reasons.get(reason, 0), limit, True


def _by_reason(reasons: Mapping[str, int], of: str) -> str:
    if of or not reasons:
        return ""
    most = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    shown = [f"{reason} {count:,}" for reason, count in most[:_REASONS_SHOWN]]
    more = [f"{len(most) - _REASONS_SHOWN} more reasons"] if len(most) > _REASONS_SHOWN else []
    return f": {', '.join([*shown, *more])}"


def _named(judged: Sequence[date]) -> str:
    if not judged:
        return ""
    first, last = min(judged), max(judged)
    return f" of arrival day {first}" if first == last else f" of arrival days {first} to {last}"


def _since(days: Mapping[date, RowsOfDay], judged: Sequence[date], of: str, limit: float) -> str:
    """Since which day each has been over the limit, where that is not the last one alone."""
    since: date | None = None
    for day in sorted((d for d in days if judged and d <= max(judged)), reverse=True):
        part = days[day]
        bad = part.malformed.get(of, 0) if of else part.bad
        if not part.rows or bad <= limit * part.rows:
            break
        since = day
    return f"; so on each day since {since}" if since and since < max(judged) else ""
