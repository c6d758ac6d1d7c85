"""The state of the data in the report's first line, and the changes since the previous report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strandline.quality.findings.check import Finding, in_order, state_line
from strandline.visible import number_of

_LONGEST = 140
"""The longest finding in the first line in characters; they follow it in full."""


@dataclass(frozen=True)
class State:
    """The state of the data.

    Attributes:
        findings: by severity, the most severe first.
    """

    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, findings: Sequence[Finding], runs: Sequence[Mapping[str, Any]]) -> State:
        """The state by the current findings of all runs.

        Args:
            findings: the findings, in any order.
            runs: the runs, the newest first; empty if nothing has been rebuilt yet.
        """
        if not runs:
            return cls((Finding("runs", "warning", "nothing has been rebuilt yet"),))
        return cls(tuple(in_order(findings)))

    @property
    def tone(self) -> str:
        """The colour: `bad` if a finding is critical, `open` if one is a warning, else `good`."""
        severities = {one.severity for one in self.findings}
        if "critical" in severities:
            return "bad"
        return "open" if "warning" in severities else "good"

    def __str__(self) -> str:
        """The first line of the report: `state_line`, truncated if it is long."""
        return state_line(self.findings, _LONGEST)

    @property
    def needs_list(self) -> bool:
        """Whether the first line does not show all findings in full."""
        counts_more = any(len(one.every) > 1 for one in self.findings)
        return len(self.findings) > 1 or counts_more or str(self) != state_line(self.findings)


_COUNTED = (
    ("slots", "slot", ""),
    ("windows", "window", ""),
    ("pairs", "pair", ""),
    ("quarantine", "record", " in quarantine"),
)


@dataclass(frozen=True)
class Changes:
    """The changes since the previous report.

    Attributes:
        made_at: the time of the previous report.
        texts: a part of a sentence for each change; empty if there is none.
    """

    made_at: str
    texts: tuple[str, ...]


def summary_of(
    totals: Mapping[str, Any], *, made_at: str, runs: int, processed_up_to: str, state: str
) -> dict[str, Any]:
    """The figures with which the next report is compared."""
    counts = {name: totals[name] for name, *_ in _COUNTED if name in totals}
    return {
        "made_at": made_at,
        "runs": runs,
        "processed_up_to": processed_up_to,
        "state": state,
        **counts,
    }


def changes_since(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> Changes | None:
    """The changes between two summaries; None if there was no previous report."""
    if before is None:
        return None
    return Changes(str(before.get("made_at", "")), tuple(_texts(before, now)))


def _texts(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if before.get("state") != now["state"]:
        yield f"state was “{before.get('state')}”"
    if before.get("processed_up_to") != now["processed_up_to"]:
        yield f"processed up to {now['processed_up_to']} (was {before.get('processed_up_to')})"
    if more := _more(before, now, "runs"):
        yield _change(more, "run")
    for name, noun, where in _COUNTED:
        if more := _more(before, now, name):
            yield f"{_change(more, noun)}{where}"


def _change(more: int, noun: str) -> str:
    """A difference with its noun: `+1 run`, `-2 windows`."""
    return f"{'+' if more > 0 else '-'}{number_of(abs(more), noun)}"


def _more(before: Mapping[str, Any], now: Mapping[str, Any], name: str) -> int:
    was, is_now = before.get(name), now.get(name)
    return is_now - was if isinstance(was, int) and isinstance(is_now, int) else 0
