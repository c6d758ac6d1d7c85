"""Findings as text, one line each, by severity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strandline.cli.console import escape

_COLOURS = {"critical": "red", "warning": "yellow"}


def lines(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each finding, with rich's markup."""
    for one in findings:
        colour = _COLOURS.get(one["severity"], "dim")
        yield f"[{colour}]{one['severity']}[/] {escape(one['name'])}: {escape(one['sentence'])}\n"


def of_status(found: Mapping[str, Any]) -> Iterator[str]:
    """The findings of a status, after the notes on its tables; with --deep, also their books."""
    if found["notice"]:
        yield f"note: {escape(found['notice'])}\n"
    yield from lines(found["findings"])
    books = found["books_of_tables"]
    if books and not any(one["name"] == "tables" for one in found["findings"]):
        yield f"tables: {books:,} of {books:,} books over them balance\n"


def of_audit(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The expectations that a run fails, and the number that it meets."""
    failed = [result for result in results if not result["success"]]
    for one in failed:
        name = f"{escape(one['expectation'])} on {one['table']}"
        yield f"[yellow]{one['severity']}[/] {name}: {escape(one['figures'])}\n"
    if results:
        yield f"audit: {len(results) - len(failed)} of {len(results)} expectations met\n"
