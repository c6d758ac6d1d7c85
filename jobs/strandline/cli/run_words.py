"""The parts of a run as commands print them: its windows, state, changes and engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strandline.cli.console import escape
from strandline.model.intervals import EVERYTHING, text_of
from strandline.quality import progress
from strandline.visible import number_of


def windows(start: str, end: str) -> tuple[str, str]:
    """The range of the windows that a run has computed."""
    if start == end:
        return "windows", "none"
    return "windows from", f"{first_window(start)} to {end}"


def first_window(start: str) -> str:
    """The start of a run's windows; `the first one` for a run over all windows."""
    return "the first one" if start == text_of(EVERYTHING.start_ms) else start


def cutoff(horizon: str | None) -> str:
    """The data cut-off of a run; the first instant if nothing has arrived, and none was given."""
    return progress.cutoff(horizon, lambda instant: instant or "not known")


def changes(run: Mapping[str, Any]) -> str:
    """The number of rows in a run's diff; `–` if the run has no diff."""
    if run["diff"] is None:
        return "–"
    rows = number_of(sum(sum(counts.values()) for counts in run["diff"].values()), "row")
    return {True: rows, False: f"{rows}, not published", None: f"{rows} planned"}[
        run["diff_published"]
    ]


def state(run: Mapping[str, Any]) -> str:
    """The state of a run; an unfinished run of another host may still be running."""
    if run["status"] != "unknown":
        return str(run["status"]) + (", reverted" if run["reverted_by"] else "")
    if run["step_of_later_version"]:
        return f"not known: its last step, {escape(run['step'])}, is of a later version"
    return f"running or dead on {escape(run['host'] or 'a host not noted')} since {run['started']}"


def edited(before: str, of: Mapping[str, Any]) -> str:
    """The rules that were edited, after the words `before`; nothing if none is known."""
    return before + escape(", ".join(of["edited_since"])) if of["edited_since"] else ""


def engine(run: Mapping[str, Any]) -> str:
    """The engine of a run; nothing for a run of an earlier version, which did not record it."""
    return f" on {run['engine']} {run['engine_version']}" if run["engine"] else ""
