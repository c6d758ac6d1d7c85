"""The result of a rule of `quality`, and findings as commands, report and alerts show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from textwrap import shorten
from typing import Any, Literal, TypeAlias

from strandline.visible import number_of

Severity: TypeAlias = Literal["critical", "warning"]
BY_QUALITY: dict[str, Severity | None] = {"allow": None, "warn": "warning", "fail": "critical"}
"""The severity by the value of a key of `quality`, such as `gaps`; None: the rule is off."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a rule of `quality`.

    Attributes:
        name: the rule's key in `quality`, such as `max_malformed_share`.
        severity: `critical` blocks publishing.
        value: the observed value in the rule's unit; None: there is no data to check.
        limit: the largest allowed value.
        sentence: the figures as text.
        of: the part of the data with this limit, such as a reason, if the key has several limits.
        every: the names of what the sentence only counts, such as of up to 1,000 silent channels.
    """

    name: str
    severity: Severity
    value: float | None
    limit: float
    sentence: str
    of: str = ""
    every: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """Whether it holds."""
        return self.value is None or self.value <= self.limit

    @property
    def column(self) -> str:
        """The column of the audit's table `range` that contains the value."""
        return f"{self.name} {self.of}".rstrip()


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a pipeline's data or runs.

    Attributes:
        name: the key of `quality`, or the failed expectation.
        severity: `critical`, `warning` or `info`.
        sentence: the problem in figures.
        run_id: the run that found it; None: it was not found by a run.
        every: the names of what the sentence only counts, such as of up to 1,000 silent channels.
    """

    name: str
    severity: str
    sentence: str
    run_id: str | None = None
    every: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        return asdict(self)


EXPECTATIONS = {
    "max_malformed_share": "expect_malformed_share_to_be_at_most",
    "fresh_within": "expect_arrivals_to_be_fresh",
    "volume": "expect_volume_to_be_usual",
    "silent_after": "expect_no_silent_channel",
    "watermark_ahead": "expect_watermark_not_to_be_ahead",
    "events_of_1970": "expect_no_events_at_the_epoch",
    "max_late_share": "expect_late_share_to_be_at_most",
    "max_removed_share": "expect_removed_share_to_be_at_most",
    "gaps": "expect_no_gaps",
}
"""The audit's expectation for each key of `quality`."""
OF_THE_RANGE = (
    "expect_books_to_balance",
    "expect_no_open_slot_before_a_fired_one",
    "expect_pairs_to_be_unique",
    "expect_slot_states_to_agree_with_crossings",
    "expect_slots_of_the_range_to_be_present",
    "expect_slots_to_be_unique",
    "expect_tables_to_share_no_record",
    "expect_window_states_to_agree_with_crossings",
    "expect_windows_to_be_unique",
)
"""The audit's expectations that no key of `quality` switches off."""
_KEYS = {expectation: key for key, expectation in EXPECTATIONS.items()}
_GRAVEST_FIRST = ("critical", "warning", "info")
_STALE = ("fresh_within", "schedule")
"""The names of findings that mean that the data is stale."""
_FIRST = (*_STALE, "watermark_ahead", "events_of_1970", "max_malformed_share", "silent_after")
"""Of equally severe findings the first ones, since they are often the cause of the others."""
_LAST = ("volume", "gaps", "overridden")
"""Of equally severe findings the last ones, which silence, for one, has as its effects."""


def state_line(findings: Iterable[Finding], longest: int | None = None) -> str:
    """The state of the data in one line: `OK`, or the first finding and the number of others.

    Findings of the severity `info` do not show; only the ranges of windows that are published by
    other rules than the pipeline's are counted.

    Examples: `OK: 2 ranges by other rules`,
    `STALE: no arrival since 2026-03-02T23:31:00Z … (and 2 more)`.

    Args:
        findings: the findings, in any order.
        longest: the most characters of the finding, without the number of others; None: any.
    """
    every = in_order(findings)
    shown = [finding for finding in every if finding.severity != "info"]
    if not shown:
        ranges = sum(finding.name == "overridden" for finding in every)
        return f"OK: {number_of(ranges, 'range')} by other rules" if ranges else "OK"
    first, *others = shown
    label = "STALE" if first.name in _STALE else first.severity.upper()
    # the figures of a declared expectation do not say what is expected
    name = f"{first.name} " if _is_declared(first.name) else ""
    line = f"{label}: {name}{first.sentence}"
    if longest is not None:
        line = shorten(line, longest, placeholder=" …")
    return line + (f" (and {len(others):,} more)" if others else "")


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by severity, the most severe first; causes before effects, as silence before gaps.

    Equal ones stay in their order.
    """
    return sorted(findings, key=lambda one: (_GRAVEST_FIRST.index(one.severity), _place(one.name)))


def _place(name: str) -> int:
    """The place of a finding among equally severe ones."""
    by_name = (*_FIRST, "", *_LAST)
    return by_name.index(name if name in by_name else "")


def findings_in(audit: Iterable[Mapping[str, Any]], run_id: str | None = None) -> list[Finding]:
    """The failed expectations of an audit as findings, the most severe first.

    Args:
        audit: the ledger's results, each with `expectation`, `severity`, `success` and `figures`.
        run_id: the id of the audited run.
    """
    failed = [result for result in audit if not result["success"]]
    names = [_KEYS.get(result["expectation"], result["expectation"]) for result in failed]
    return in_order(
        Finding(
            name,
            result["severity"],
            _sentence(name, result),
            run_id,
            tuple(result.get("every", ())),
        )
        for name, result in zip(names, failed, strict=True)
    )


def rules_in(audit: Iterable[Mapping[str, Any]]) -> set[str]:
    """The names of all rules that an audit has evaluated, as findings have them."""
    return {_KEYS.get(result["expectation"], result["expectation"]) for result in audit}


def _sentence(name: str, result: Mapping[str, Any]) -> str:
    figures: str = result["figures"]
    return f"on {result['table']}: {figures}" if _is_declared(name) else figures


def _is_declared(name: str) -> bool:
    """Whether a finding is an expectation of the pipeline's file, not one of every audit."""
    return name.startswith("expect_") and name not in OF_THE_RANGE
