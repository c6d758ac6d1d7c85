"""What a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pandas as pd

from strandline.engine.idleness.state import SourceState


@dataclass(frozen=True)
class ReportTables:
    """What a report is made from. Each table may be empty, but has its columns; others are ignored.

    Instants are `datetime64` columns that know their zone, dates are `datetime.date`.

    Attributes:
        completeness: the table `completeness`.
        quarantine: how many records were quarantined: `reason`, `day` (the table's
            `quarantine_date`), `records`.
        lateness: how many records were how late: `late_by_ms`, rounded up as one likes, `records`.
        channels: the `timeline`'s rows of kind `channel`: `channel`, `arrival_date`, `settled_ms`
            and, if it is there, `pending_ms`.
        runs: the ledger `runs`.
        latest: the same up to the last observed day, as far back as it takes to know where each
            channel stands; None: `channels`.
        source: where channels can go idle: where the source stands after the last observed day.
        arrivals: the rows of each arrival day shown, where they are known.
        values: of late and of malformed rows, how often columns of few values have each of these:
            `group`, `column`, `value`, `records`; None: not known.
        advice: the last answer of the advisor; None: there is none.
        before: the summary of the report before; None: there was none.
    """

    completeness: pd.DataFrame
    quarantine: pd.DataFrame
    lateness: pd.DataFrame
    channels: pd.DataFrame
    runs: pd.DataFrame
    latest: pd.DataFrame | None = None
    source: SourceState | None = None
    arrivals: Mapping[date, int] = field(default_factory=dict)
    values: pd.DataFrame | None = None
    advice: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Shown:
    """The days that a report shows, both among them, and what all days hold.

    Attributes:
        since: the first day; None: the first there is.
        until: the last day; None: the last there is.
        totals: of all days: `first_day`, `last_day`, `slots`, `windows`, `quarantine`.
    """

    since: str | None
    until: str | None
    totals: Mapping[str, Any]
