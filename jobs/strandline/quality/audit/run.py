"""The audit of a staged run. The import loads Great Expectations, which takes seconds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from strandline.quality.audit import lean as _lean  # noqa: F401 - before Great Expectations

# isort: split
import pandas as pd
from great_expectations.core import ExpectationValidationResult
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.data_context.abstract_data_context import (
    AbstractDataContext,
)
from great_expectations.expectations.expectation import Expectation

from strandline.model.books import Book
from strandline.quality.audit import expectations as own
from strandline.quality.audit import validation, wording
from strandline.quality.audit.declared import (
    declared_expectations,
    expectations_of,
    results_of_passed,
)
from strandline.quality.audit.result import Audit, AuditResult
from strandline.quality.audit.wording import Gaps, RangeFigures
from strandline.quality.completeness import in_ms
from strandline.quality.findings.check import Check
from strandline.spec import PipelineSpec
from strandline.spec.joined import PAIRS
from strandline.spec.window import Cumulative

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class _Table:
    """One table of the audit: its rows and its expectations.

    `figures` has figures by expectation, in place of the figures of Great Expectations;
    `checks` has the results of rules by column, for expectations about a single column.
    """

    name: str
    frame: DataFrame | pd.DataFrame
    row_id: tuple[str, ...]
    own: Sequence[Expectation]
    declared: Sequence[Expectation] = ()
    figures: Mapping[type[Expectation], str] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)

    def check_of(self, expectation: Expectation) -> Check | None:
        """The result of the rule that an expectation is about, if it is about one."""
        return self.checks.get(getattr(expectation, "column", ""))


@dataclass(frozen=True, kw_only=True)
class AuditInput:
    """The staged tables of a run, and the counts of its range.

    Attributes:
        results: the staged windows or pairs.
        pairs: the pairs of the windows, if the pipeline publishes both.
        completeness: the staged slots on the driver, with time zones in their instants. It has the
            column `input_ended` if the input of a slot has been ended (`--close`).
        books: the books of the run.
        slots_expected: the starts, in ms, of the slots of the first and of the last record of each
            event date, from the timeline's day map, which is counted independently of the slots.
        gaps: the gaps in the range, including gaps that are not listed.
        late: the number of late records in the range.
        accepted: the number of accepted records in the range.
        checks: the results of the rules of `quality`.
    """

    results: DataFrame
    pairs: DataFrame | None = None
    completeness: pd.DataFrame
    books: Sequence[Book]
    slots_expected: Collection[int]
    gaps: Gaps
    late: int
    accepted: int
    checks: Sequence[Check] = ()


def audit(
    spec: PipelineSpec,
    staged: AuditInput,
    *,
    run_id: str,
    context_folder: Path | None,
) -> Audit:
    """Evaluate all expectations of a staged run; a failed expectation raises nothing.

    An expectation that cannot be evaluated has failed. An empty range meets all expectations,
    except perhaps expectations that the pipeline declares.

    Args:
        spec: the pipeline.
        staged: the staged run.
        run_id: the run's id, which names the validation results.
        context_folder: the folder for validation results, from which Data Docs are built; None:
            they are not kept.

    Raises:
        InputError: the spec declares an expectation that does not exist (`validate_expectations`).
    """
    tables = [
        _books(staged.books),
        # those that hold need no validation: each expectation takes some 20 ms
        _range(spec, _range_figures(spec, staged), [c for c in staged.checks if not c.success]),
        _completeness(spec, staged.completeness),
        _results(spec, staged.results),
        *([] if staged.pairs is None else [_pairs(spec, staged.pairs)]),
    ]
    results = _evaluated(tables, run_id, context_folder)
    return Audit((*results, *results_of_passed(staged.checks)))


def audit_removals(removed: int, published: int, *, max_share: float, run_id: str) -> AuditResult:
    """Evaluate the limit on the share of published windows that a run removes.

    Args:
        removed: the number of published windows that no staged window of their key overlaps.
        published: the number of published windows in the range, at least one.
        max_share: the largest share that may be removed.
        run_id: the run's id, which names the validation result.
    """
    figures = wording.of_removals(removed, published, max_share)
    table = _Table(
        "range",
        pd.DataFrame([{"removed_share": removed / published}]),
        (),
        [own.ExpectRemovedShareToBeAtMost(max_value=max_share)],
        figures={own.ExpectRemovedShareToBeAtMost: figures},
    )
    return _evaluated([table], run_id)[0]


def audit_tables(books: Sequence[Book], *, run_id: str) -> AuditResult:
    """Evaluate the books over the published tables.

    Only books that do not balance are evaluated by Great Expectations.

    Args:
        books: rows of the tables, compared with independent counts.
        run_id: the run's id, which names the validation result.
    """
    kind, figures = own.ExpectTablesToShareNoRecord, wording.of_books(books)
    if all(book.balanced for book in books):  # nearly always: a validation would take longer
        return AuditResult(kind.expectation_type, "quarantine", "critical", True, figures)
    return _evaluated([_books(books, "quarantine", kind)], run_id)[0]


def _evaluated(
    tables: Sequence[_Table], run_id: str, folder: Path | None = None
) -> list[AuditResult]:
    """The results of the expectations of some tables; `folder`: where they are kept."""
    # given no time, Great Expectations takes it from the run id, where it looks like a date
    run = RunIdentifier(run_name=run_id, run_time=datetime.now(UTC))
    with validation.without_chatter():
        gx_context = validation.context(folder)
        return [one for table in tables for one in _validated(gx_context, table, run)]


def validate_expectations(spec: PipelineSpec) -> None:
    """Check the expectations that a pipeline declares, without data and without Spark.

    Raises:
        InputError: a type does not exist or does not apply to its table, an argument is wrong, or
            the table lacks a column. The message names the first mistake.
    """
    declared_expectations(spec, "windows")  # those of all tables are made, and so checked


def _named_by(kind: str, spec: PipelineSpec) -> tuple[str, ...]:
    """The columns that name a slot or a window: its start; with its end if windows overlap."""
    start, end = f"{kind}_start", f"{kind}_end"
    return (start, end) if isinstance(spec.window, Cumulative) else (start,)


def _books(
    books: Sequence[Book],
    name: str = "books",
    kind: type[own.ExpectBooksToBalance] = own.ExpectBooksToBalance,
) -> _Table:
    rows = [(book.statement, book.total, book.accounted) for book in books]
    frame = pd.DataFrame(rows, columns=["book", "total", "accounted"])
    figures: dict[type[Expectation], str] = {kind: wording.of_books(books)}
    return _Table(name, frame, ("book",), [kind()], figures=figures)


def _range_figures(spec: PipelineSpec, staged: AuditInput) -> RangeFigures:
    """The figures of the range as a whole; existing slots are counted from their rows."""
    starts, is_gap = staged.completeness["slot_start"], staged.completeness["gap"].astype(bool)
    present = {*in_ms(starts[~is_gap]).tolist()}
    return RangeFigures(
        accepted=staged.accepted,
        late=staged.late,
        gaps=staged.gaps,
        slots_expected=len(staged.slots_expected),
        slots_missing=sorted(set(staged.slots_expected) - present),
        max_late_share=spec.quality.max_late_share,
    )


def _range(spec: PipelineSpec, of_range: RangeFigures, checks: Sequence[Check]) -> _Table:
    row: dict[str, float | None] = {
        "slots_expected": of_range.slots_expected,
        "slots_present": of_range.slots_expected - len(of_range.slots_missing),
        "late_share": of_range.late_share,
        "gaps": of_range.gaps.count,
        **{check.column: check.value for check in checks},
    }
    figures: dict[type[Expectation], str] = {
        own.ExpectSlotsOfTheRangeToBePresent: of_range.of_slots,
        own.ExpectLateShareToBeAtMost: of_range.of_late_share,
        own.ExpectNoGaps: str(of_range.gaps),
    }
    return _Table(
        "range",
        pd.DataFrame([row]),
        (),
        [*own.expectations_of_range(spec), *expectations_of(checks)],
        figures=figures,
        checks={check.column: check for check in checks},
    )


def _completeness(spec: PipelineSpec, slots: pd.DataFrame) -> _Table:
    if "input_ended" not in slots:
        slots = slots.assign(input_ended=False)
    return _Table(
        "completeness",
        slots,
        _named_by("slot", spec),
        own.expectations_of_completeness(),
        declared_expectations(spec, "completeness"),
    )


def _results(spec: PipelineSpec, results: DataFrame) -> _Table:
    if spec.result != "windows":
        return _pairs(spec, results)
    return _Table(
        "windows",
        results,
        (*spec.source.key, *_named_by("window", spec)),
        own.expectations_of_windows(spec),
        declared_expectations(spec, "windows"),
    )


def _pairs(spec: PipelineSpec, pairs: DataFrame) -> _Table:
    table = spec.tables[PAIRS]
    return _Table(
        table.name,
        pairs,
        table.keys,
        own.expectations_of_pairs(table.keys),
        declared_expectations(spec, PAIRS),
    )


def _validated(
    gx_context: AbstractDataContext, table: _Table, run: RunIdentifier
) -> Iterator[AuditResult]:
    asked = [*table.own, *table.declared]
    of_table = (gx_context, table.name, table.frame, asked)
    found = validation.validate(*of_table, row_id=table.row_id, run=run)
    for expectation, result in zip(asked, found, strict=True):
        check = table.check_of(expectation)
        yield AuditResult(
            expectation=expectation.expectation_type,
            table=table.name,
            severity=str(expectation.severity.value),
            success=bool(result.success),
            figures=_figures(table, expectation, result),
            every=() if check is None else check.every,
        )


def _figures(table: _Table, expectation: Expectation, result: ExpectationValidationResult) -> str:
    exception = validation.exception_of(result)
    if exception is not None:
        return wording.of_exception(exception)
    if type(expectation) in table.figures:
        return table.figures[type(expectation)]
    if (check := table.check_of(expectation)) is not None:
        return check.sentence
    arguments = {} if expectation in table.own else expectation.configuration.kwargs
    return wording.of_result(result.result, arguments, table.row_id)
