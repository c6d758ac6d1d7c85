"""The state of the data in the report's first line, and the findings behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strandline.quality.findings.check import Finding, in_order, state_line

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
