"""The activity of channels on some arrival days, as far as it can move the watermark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import pandas as pd

TICK_COLUMNS = ("arrival_date", "channel", "tick_ms", "before_ms", "candidate_ms")
OFFER_COLUMNS = ("arrival_date", "channel", "seen_from", "candidate_ms")
FIRST_COLUMNS = ("arrival_date", "channel", "instant", "sequence", "ts_ms")


@dataclass(frozen=True)
class Activity:
    """The activity of channels on some arrival days.

    Attributes:
        on_ticks: `arrival_date`, `channel`, `tick_ms` (the tick at which a record becomes visible),
            `before_ms` (the tick of the record before it; null: none on that day), `candidate_ms`
            (the largest candidate offered at the tick; null: none).
        at_once: `arrival_date`, `channel`, `seen_from`, `candidate_ms`: offers visible at once.
        first: `arrival_date`, `channel`, `instant`, `sequence`, `ts_ms` of the day's first record;
            for discovered channels only.
    """

    on_ticks: pd.DataFrame
    at_once: pd.DataFrame
    first: pd.DataFrame

    @property
    def parts(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """All of its tables."""
        return self.on_ticks, self.at_once, self.first

    def of(self, day: date) -> Activity:
        """The activity of one day."""
        return Activity(*(part[part["arrival_date"] == day] for part in self.parts))


SILENCE = Activity(
    pd.DataFrame(columns=[*TICK_COLUMNS]),
    pd.DataFrame(columns=[*OFFER_COLUMNS]),
    pd.DataFrame(columns=[*FIRST_COLUMNS]),
)
"""The activity of channels on days without a record."""
