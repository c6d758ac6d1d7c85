"""What must hold before a staged run is published. It loads Great Expectations: seconds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
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
from strandline.quality.audit import checkpoint, wording
from strandline.quality.audit import expectations as own
from strandline.quality.audit.checks import expectations_of, held
from strandline.quality.audit.declared import declared_expectations
from strandline.quality.audit.result import Audit, AuditResult
from strandline.quality.audit.wording import RangeFigures
from strandline.quality.completeness import in_ms
from strandline.quality.findings.check import Check
from strandline.spec import PipelineSpec
from strandline.spec.joined import PAIRS
from strandline.spec.window import Cumulative

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class _Table:
    """One table of the audit: its rows, and what is expected of them.

    `figures` has the figures of the expectations that know theirs better than Great Expectations;
    `sentences` those of expectations that have a column of their own, by its name.
    """

    name: str
    frame: DataFrame | pd.DataFrame
    row_id: tuple[str, ...]
    own: Sequence[Expectation]
    declared: Sequence[Expectation] = ()
    figures: Mapping[type[Expectation], str] = field(default_factory=dict)
    sentences: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AuditInput:
    """What a run has staged, and what was counted of its range.

    Attributes:
        results: the staged windows, or pairs; read by two Spark jobs, and those of the declared
            expectations.
        pairs: the pairs of the windows, where a pipeline publishes both.
        completeness: the staged slots, on the driver; its instants know their zone. With
            `input_ended` where the input of some of them has been ended (`--close`).
        books: the books of the run.
        slots_expected: the starts, in ms, of slots that must be there: those of the first and the
            last record of each event date, as the timeline's day map has them, which is counted
            apart from the slots.
        gaps: the number of gaps in the range, listed or not.
        late: the late records of the range.
        accepted: the accepted records of the range.
        checks: the rules of `quality` that have been applied to the run.
    """

    results: DataFrame
    pairs: DataFrame | None = None
    completeness: pd.DataFrame
    books: Sequence[Book]
    slots_expected: Collection[int]
    gaps: int
    late: int
    accepted: int
    checks: Sequence[Check] = ()


def audit(
    spec: PipelineSpec,
    staged: AuditInput,
    *,
    run_id: str,
    context_folder: Path | None,
    audited_at: datetime | None = None,
) -> Audit:
    """Hold a staged run against everything that is expected of it; nothing is raised or changed.

    An expectation that cannot be evaluated has failed. An empty range meets all but what the
    pipeline's own expectations ask of it.

    Args:
        spec: the pipeline.
        staged: what is judged.
        run_id: names the validation results.
        context_folder: where validation results are kept for Data Docs; None: nowhere.
        audited_at: the time of the validation results; None: now.

    Raises:
        InputError: the spec declares an expectation that does not exist (`validate_expectations`).
    """
    tables = [
        _books(staged.books),
        # those that hold need no checkpoint: each expectation takes some 20 ms
        _range(spec, _range_figures(spec, staged), [c for c in staged.checks if not c.success]),
        _completeness(spec, staged.completeness),
        _results(spec, staged.results),
        *([] if staged.pairs is None else [_pairs(spec, staged.pairs)]),
    ]
    run = RunIdentifier(run_name=run_id, run_time=audited_at)
    with checkpoint.without_chatter():
        gx_context = checkpoint.context(context_folder)
        judged = [one for table in tables for one in _judged(gx_context, table, run)]
    return Audit((*judged, *held(staged.checks)))


def audit_removals(
    removed: int, published: int, *, max_share: float, run_id: str, audited_at: datetime | None
) -> AuditResult:
    """Hold how many published windows of a range a run removes against how many may go.

    Args:
        removed: the published windows that no staged window of their key overlaps.
        published: all published windows of the range; at least one.
        max_share: the most of them that may go.
        run_id: names the validation result.
        audited_at: its time; None: now.
    """
    share = removed / published
    expectation = own.ExpectRemovedShareToBeAtMost(max_value=max_share)
    figures_of_share = f"{removed:,} of {published:,} published windows go ({share:.3g})"
    limit = f"{'>' if share > max_share else '≤'} {max_share:.3g}"
    table = _Table(
        "range",
        pd.DataFrame([{"removed_share": share}]),
        (),
        [expectation],
        figures={own.ExpectRemovedShareToBeAtMost: f"{figures_of_share} {limit}"},
    )
    run = RunIdentifier(run_name=run_id, run_time=audited_at)
    with checkpoint.without_chatter():
        (result,) = _judged(checkpoint.context(None), table, run)
    return result


def audit_tables(books: Sequence[Book], *, run_id: str, audited_at: datetime | None) -> AuditResult:
    """Hold the books over published tables: those that balance without Great Expectations.

    Args:
        books: what stands in the tables, held against what was counted apart.
        run_id: names the validation result.
        audited_at: its time; None: now.
    """
    kind, figures = own.ExpectTablesToShareNoRecord, wording.of_books(books)
    if all(book.balanced for book in books):  # nearly always: a checkpoint would take longer
        return AuditResult(kind.expectation_type, "quarantine", "critical", True, figures)
    table = _books(books, "quarantine", kind)
    run = RunIdentifier(run_name=run_id, run_time=audited_at)
    with checkpoint.without_chatter():
        (result,) = _judged(checkpoint.context(None), table, run)
    return result


def validate_expectations(spec: PipelineSpec) -> None:
    """Check the expectations that a pipeline declares, without data and without Spark.

    Raises:
        InputError: a type does not exist or cannot be asked of its table, an argument is wrong,
            or a column is not one of the table's. The first of them is named.
    """
    declared_expectations(spec, "windows")  # those of all tables are made, and so checked


def _named_by(kind: str, spec: PipelineSpec) -> tuple[str, ...]:
    """What names a slot or a window to a person: its start, and its end where several share it."""
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
    """What is said of the range as a whole; slots that are there are counted from their rows."""
    starts, is_gap = staged.completeness["slot_start"], staged.completeness["gap"].astype(bool)
    present = {*in_ms(starts[~is_gap]).tolist()}
    return RangeFigures(
        accepted=staged.accepted,
        late=staged.late,
        gaps=staged.gaps,
        **wording.gaps_shown(staged.completeness[is_gap]),
        slots_expected=len(staged.slots_expected),
        slots_missing=sorted(set(staged.slots_expected) - present),
        max_late_share=spec.quality.max_late_share,
    )


def _range(spec: PipelineSpec, of_range: RangeFigures, checks: Sequence[Check]) -> _Table:
    row: dict[str, float | None] = {
        "slots_expected": of_range.slots_expected,
        "slots_present": of_range.slots_expected - len(of_range.slots_missing),
        "late_share": of_range.late_share,
        "gaps": of_range.gaps,
        **{check.column: check.value for check in checks},
    }
    figures: dict[type[Expectation], str] = {
        own.ExpectSlotsOfTheRangeToBePresent: of_range.of_slots,
        own.ExpectLateShareToBeAtMost: of_range.of_late_share,
        own.ExpectNoGaps: of_range.of_gaps,
    }
    return _Table(
        "range",
        pd.DataFrame([row]),
        (),
        [*own.expectations_of_range(spec), *expectations_of(checks)],
        figures=figures,
        sentences={check.column: check.sentence for check in checks},
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


def _judged(
    gx_context: AbstractDataContext, table: _Table, run: RunIdentifier
) -> Iterator[AuditResult]:
    asked = [*table.own, *table.declared]
    found = checkpoint.validate(
        gx_context, table.name, table.frame, asked, row_id=table.row_id, run=run
    )
    for expectation, result in zip(asked, found, strict=True):
        yield AuditResult(
            expectation=expectation.expectation_type,
            table=table.name,
            severity=str(expectation.severity.value),
            success=bool(result.success),
            figures=_figures(table, expectation, result),
        )


def _figures(table: _Table, expectation: Expectation, result: ExpectationValidationResult) -> str:
    exception = checkpoint.exception_of(result)
    if exception is not None:
        return wording.of_exception(exception)
    if type(expectation) in table.figures:
        return table.figures[type(expectation)]
    sentence = table.sentences.get(getattr(expectation, "column", ""))
    if sentence is not None:
        return sentence
    arguments = {} if expectation in table.own else expectation.configuration.kwargs
    return wording.of_result(result.result, arguments, table.row_id)
