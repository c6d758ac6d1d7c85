"""The result of an audit, as the ledger and the report keep it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditResult:
    """One expectation with its result.

    Attributes:
        expectation: its type, such as `expect_books_to_balance`.
        table: the table that it is about: `windows`, `completeness`, `books` or `range`.
        severity: `critical` blocks publishing; `warning` and `info` do not.
        success: whether it holds.
        figures: the observed numbers; if it fails, with up to three of the offending rows.
        every: what the figures count and may not name, such as each of up to 1,000 silent channels.
    """

    expectation: str
    table: str
    severity: str
    success: bool
    figures: str
    every: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The result as the ledger keeps it; `every` only where there is any."""
        said = asdict(self)
        return said if self.every else {name: said[name] for name in said if name != "every"}


@dataclass(frozen=True, slots=True)
class Audit:
    """The results of all expectations of a run, and whether the run may be published."""

    results: tuple[AuditResult, ...] = ()

    @property
    def failures(self) -> tuple[AuditResult, ...]:
        """The expectations that do not hold, of any severity."""
        return tuple(result for result in self.results if not result.success)

    @property
    def blocking(self) -> tuple[AuditResult, ...]:
        """The critical expectations that do not hold."""
        return tuple(result for result in self.failures if result.severity == "critical")

    @property
    def blocked(self) -> bool:
        """Whether the run must not be published."""
        return bool(self.blocking)

    def to_json(self) -> list[dict[str, Any]]:
        """The results as the ledger keeps them."""
        return [result.to_json() for result in self.results]
