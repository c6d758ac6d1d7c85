"""A pipeline of one channel, and the findings of its runs and its status."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lakes import a_record, at

from strandline.pipeline.views.status import status_of

if TYPE_CHECKING:
    from lakes import Line

    from strandline.pipeline.request.outcome import Outcome

ONE = {"source__channel": ..., "source__channels": ..., "quality__gaps": "allow"}
"""A pipeline of one channel, without gaps to look at."""


def every(minutes: int, first: str, until: str, **changed: Any) -> list[dict[str, Any]]:
    """Records of a day and the following ones, each a minute on its way."""
    now, end, rows = at(first), at(until), []
    while now < end:
        row = a_record("1", "1", **changed)
        happened = now - timedelta(minutes=1)
        rows.append(row | {"arrived_at": now, "happened_at": happened, "arrived_on": now.date()})
        now += timedelta(minutes=minutes)
    return rows


def named(run: Outcome) -> dict[str, str]:
    """The sentences of a run's findings, by their names."""
    return {finding.name: finding.sentence for finding in run.findings}


def shown(line: Line) -> dict[str, str]:
    """The same of status."""
    found = status_of(line.spec, line.lake)["findings"]
    return {finding["name"]: finding["sentence"] for finding in found}
