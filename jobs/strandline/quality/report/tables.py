"""The tables from which a report is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pandas as pd

from strandline.quality.report.held_back_by import HeldBack


@dataclass(frozen=True)
class ReportTables:
    """The tables from which a report is made.

    Each table may be empty, but has its columns; further columns are ignored. Instants are
    `datetime64` columns with a time zone, dates are `datetime.date`.

    Attributes:
        completeness: the table `completeness`, and `missed`: the records that came too late for a
            slot's window, also those that another window holds or counts; and optionally
            `missed_at_least`: whether there may be more, whose rows of quarantine are removed.
        quarantine: counts of quarantined records: `reason`, `day` (the table's `quarantine_date`),
            `records`.
        lateness: counts of late records by lateness: `late_by_ms` (may be rounded up), `records`.
        channels: the `timeline`'s rows of kind `channel`: `channel`, `arrival_date`, `settled_ms`
            and optionally `pending_ms`, with `emitted_ms`: when a tick emits it.
        runs: a document for each run, newest first and without upkeep, as `strandline runs` has it;
            those that the report lists (`listed_runs`) as `strandline runs show` has them.
        latest: rows as in `channels` up to the last observed day, with the last row of each
            channel; None: `channels` has them.
        processed_ms: the midnight up to which everything is processed, in ms; None: there is none.
        closed_ms: the instant before which no window can change any more, in ms; None: all
            published slots are closed.
        watermark: the combined watermark; None: it is not known.
        records: the well-formed records of each shown arrival day, and of the eight weeks before.
        values: counts of late and of malformed rows by the values of low-cardinality columns:
            `group`, `column`, `value`, `records`; None: not known.
        advice: the last result of the advisor; None: there is none.
        before: the summary of the previous report; None: there was none.
    """

    completeness: pd.DataFrame
    quarantine: pd.DataFrame
    lateness: pd.DataFrame
    channels: pd.DataFrame
    runs: Sequence[Mapping[str, Any]]
    latest: pd.DataFrame | None = None
    processed_ms: int | None = None
    closed_ms: int | None = None
    watermark: HeldBack | None = None
    records: Mapping[date, int] = field(default_factory=dict)
    values: pd.DataFrame | None = None
    advice: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ShownDays:
    """The days that a report shows, and the totals over all days.

    Attributes:
        since: the first shown day; None: the first of all days.
        until: the last shown day, inclusive; None: the last of all days.
        totals: over all days: `first_day`, `last_day`, `slots`, `windows`, `quarantine`.
    """

    since: date | None
    until: date | None
    totals: Mapping[str, Any]
