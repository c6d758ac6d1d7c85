"""How far a pipeline and its runs are, in the words of commands, report and Airflow's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from strandline.model.intervals import EVERYTHING, text_of

NOTHING_HAS_ARRIVED = "none: nothing has arrived"
"""The data cut-off of a run that knew of no arrival, and was given none: the first instant."""
_FIRST = text_of(EVERYTHING.start_ms)


def cutoff(horizon: str | None, shown: Callable[[str | None], str]) -> str:
    """The data cut-off of a run; `shown`: how an instant, or none, is shown."""
    return NOTHING_HAS_ARRIVED if horizon == _FIRST else shown(horizon)


def closed_up_to(closed: str | None, slots: int, shown: Callable[[str], str]) -> str:
    """The instant before which no window can change.

    Args:
        closed: the instant; None: all published slots are closed. A window of all time starts with
            the first of all instants, and never closes.
        slots: the number of published slots.
        shown: how an instant is shown.
    """
    if closed is None:
        return "the last slot" if slots else "no slot yet"
    return "nothing yet" if closed == _FIRST else shown(closed)


def watermark(status: Mapping[str, Any]) -> str:
    """The watermark in a document of `strandline status`; of results, whose watermark it is."""
    if status["watermark"]:
        return str(status["watermark"]["summary"])
    if upstream := status["upstream"]:
        return f"the watermark of {upstream['pipeline']}: see its status"
    return "not known from the records alone" if status["two_sources"] else "none yet"
