"""How long upkeep keeps unpublished and old data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Retention:
    """The number of days for which unpublished or old data is kept.

    Attributes:
        keep_days: old versions of tables, for reading earlier states.
        staging_days: the staging of rejected, dead or prepared runs.
        report_days: the results of audits, and their pages.
        ledger_days: the steps of runs that have ended; steps of published runs stay for ever.
    """

    keep_days: int = 30
    staging_days: int = 7
    report_days: int = 90
    ledger_days: int = 400
