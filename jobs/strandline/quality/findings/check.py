"""A rule that was applied to a run's data, and its findings as everybody shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["critical", "warning"]
BY_QUALITY: dict[str, Severity | None] = {"allow": None, "warn": "warning", "fail": "critical"}
"""The severity that a word of `quality` asks for; None: nothing is asked."""


@dataclass(frozen=True, slots=True)
class Check:
    """A rule of `quality`, and what it found.

    Attributes:
        name: the key of `quality` that asks for it, such as `max_malformed_share`.
        severity: `critical` lets nothing be published.
        value: what was observed, in the rule's own unit; None: there is nothing to judge.
        limit: the largest value that holds.
        sentence: the figures, as a person reads them.
        of: which part of the data it is about, where the key has several limits.
    """

    name: str
    severity: Severity
    value: float | None
    limit: float
    sentence: str
    of: str = ""

    @property
    def success(self) -> bool:
        """Whether it holds."""
        return self.value is None or self.value <= self.limit

    @property
    def column(self) -> str:
        """The column of the audit's table `range` that holds the value."""
        return f"{self.name} {self.of}".rstrip()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a pipeline that is not as it must be.

    Attributes:
        name: the key of `quality` behind it, or the expectation that does not hold.
        severity: `critical`, `warning` or `info`.
        sentence: what was found, in figures.
        run_id: the run that found it; None: no run did.
    """

    name: str
    severity: str
    sentence: str
    run_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        return {
            "name": self.name,
            "severity": self.severity,
            "sentence": self.sentence,
            "run_id": self.run_id,
        }


EXPECTATIONS = {
    "max_malformed_share": "expect_malformed_share_to_be_at_most",
    "fresh_within": "expect_arrivals_to_be_fresh",
    "volume": "expect_volume_to_be_usual",
    "silent_after": "expect_no_silent_channel",
    "watermark_ahead": "expect_watermark_not_to_be_ahead",
    "max_late_share": "expect_late_share_to_be_at_most",
    "max_removed_share": "expect_removed_share_to_be_at_most",
    "gaps": "expect_no_gaps",
}
"""The expectation of the audit that each key of `quality` asks for."""
_KEYS = {expectation: key for key, expectation in EXPECTATIONS.items()}
_GRAVEST_FIRST = ("critical", "warning", "info")


_STALE = ("fresh_within", "schedule")
"""Findings that say that the data is old, whatever else they are."""


def state_line(findings: Iterable[Finding]) -> str:
    """The state of the data in one line: `OK`, or the gravest finding and how many more there are.

    Such as `STALE: no arrival since 2026-03-02T23:31:00Z … (and 2 more)`.
    """
    standing = in_order(finding for finding in findings if finding.severity != "info")
    if not standing:
        return "OK"
    first, *others = standing
    label = "STALE" if first.name in _STALE else first.severity.upper()
    return f"{label}: {first.sentence}" + (f" (and {len(others):,} more)" if others else "")


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings, the gravest first."""
    return sorted(findings, key=lambda finding: _GRAVEST_FIRST.index(finding.severity))


def findings_in(audit: Iterable[Mapping[str, Any]], run_id: str | None = None) -> list[Finding]:
    """The findings of an audit as the ledger keeps it: what does not hold, the gravest first.

    Args:
        audit: its results, each with `expectation`, `severity`, `success` and `figures`.
        run_id: the run that it judged.
    """
    return in_order(
        Finding(
            _KEYS.get(result["expectation"], result["expectation"]),
            result["severity"],
            result["figures"],
            run_id,
        )
        for result in audit
        if not result["success"]
    )
