"""Books over the published tables themselves, for which `status --deep` reads all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from strandline.lake.ledger.entry import rows_without_day
from strandline.lake.ledger.state import PipelineState
from strandline.lake.publish.batches import ROWS, sums_by
from strandline.lake.store.days import Days, days_of
from strandline.lake.store.reads import rows_of
from strandline.lake.store.store import Store
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import observed_days
from strandline.model.books import Book, books_off
from strandline.model.intervals import instant_of, text_of
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.quality.findings.check import Finding
from strandline.spec import PipelineSpec
from strandline.tables import COMPLETENESS, QUARANTINE

_SHOWN = 3
_ALL = ds.scalar(True)


def books_of_all(read: ReadPipeline) -> list[Book]:
    """The books over the published tables, each side counted from another table.

    - For each observed arrival day, and for the rows without one: the malformed rows in quarantine
      are as many as the timeline, or the last run's book, has counted.
    - For each slot: the late and no-window rows in quarantine are as many as in completeness.
    - For each closed slot: the records of its windows are as many as completeness has accepted, if
      windows count all that they accept.
    """
    of_quarantine = [*_of_arrival_days(read), *_of_refused(read.store)]
    may_lack = read.state.may_lack_quarantine(read.spec.quarantine_days)
    whole = [one for one in of_quarantine if not (may_lack and one.accounted < one.total)]
    return [*whole, *_of_windows(read.spec, read.store)]


def _made_by_newest_rules(state: PipelineState) -> ds.Expression:
    """The condition of malformed rows by the rules of the newest run, as the timeline counts them.

    A row that other rules made malformed stays until its range is rebuilt. An edit of aggregates or
    triggers makes no other row malformed, and no day is observed again for it.
    """
    last, runs = state.last_by_file, state.published
    if last is None:
        return _ALL
    timeline = last.timeline_fingerprint
    same_rules = {run.spec_fingerprint for run in runs if run.timeline_fingerprint == timeline}
    if all(run.spec_fingerprint in same_rules for run in runs):
        return _ALL
    return ds.field("spec_fingerprint").isin(pa.array(sorted(same_rules)))


def findings_of_books(books: Sequence[Book]) -> list[Finding]:
    """One finding for all books that do not balance, showing the first; none: all balance."""
    off = books_off(books)
    if not off:
        return []
    more = f"; and {len(off) - _SHOWN:,} more" if len(off) > _SHOWN else ""
    sentence = f"{len(off):,} of {len(books):,} books over the tables do not balance: "
    return [Finding("tables", "critical", sentence + "; ".join(off[:_SHOWN]) + more)]


def _of_arrival_days(read: ReadPipeline) -> Iterator[Book]:
    timeline, fingerprint = TimelineTable.open(read.store), read.spec.timeline_fingerprint
    rows = timeline.rows("malformed", ["arrival_date", "records"], fingerprint).to_pylist()
    counted = Counter[date]()
    for row in rows:
        counted[row["arrival_date"]] += row["records"]
    malformed = ds.field("slot_start").is_null() & _made_by_newest_rules(read.state)
    quarantined = _counted(read.store, QUARANTINE.name, [QUARANTINE.partition], malformed)
    for day in sorted(observed_days(timeline).get(fingerprint, set())):
        yield Book(f"arrival day {day}", counted[day], {"quarantined": quarantined[(day,)]})
    unknown = rows_without_day([step for step in read.state.steps if step.step == "observed"])
    yield Book("arrival day unknown", unknown, {"quarantined": quarantined[(None,)]})


def _of_refused(store: Store) -> Iterator[Book]:
    refused = ds.field("slot_start").is_valid()
    quarantined = _counted(store, QUARANTINE.name, ["slot_start", "reason"], refused)
    counted = Counter[tuple[Any, str]]()
    for row in _rows(store, COMPLETENESS.name, ["slot_start", "late", "no_window"], _ALL):
        for reason in ("late", "no_window"):
            counted[row["slot_start"], reason] += row[reason]
    for start, reason in sorted({*counted, *quarantined}):
        found = {"quarantined": quarantined[start, reason]}
        yield Book(f"{reason} of slot {_text(start)}", counted[start, reason], found)


def _of_windows(spec: PipelineSpec, store: Store) -> Iterator[Book]:
    if spec.result != "windows" or spec.window.merging or not spec.windows_count_all:
        return
    records = _counted(store, "windows", ["window_start", "window_end"], _ALL, "records")
    columns = ["slot_start", "slot_end", "on_time", "late_accepted"]
    closed = (ds.field("state") == "closed") & ~ds.field("gap")
    for row in _rows(store, COMPLETENESS.name, columns, closed):
        accepted = row["on_time"] + row["late_accepted"]
        found = {"in windows": records[row["slot_start"], row["slot_end"]]}
        yield Book(f"accepted by slot {_text(row['slot_start'])}", accepted, found)


def _counted(
    store: Store, name: str, by: Sequence[str], wanted: ds.Expression, what: str | None = None
) -> Counter[tuple[Any, ...]]:
    """The number of rows by group of a table, or the sums of a column, read batch by batch."""
    table = store.table(name)
    if table is None:
        return Counter()
    dataset, _ = days_of(table, name, Days())
    summed = [] if what is None else [what]
    groups = sums_by(rows_of(dataset, wanted, [*by, *summed]), by, summed).to_pylist()
    return Counter({tuple(row[column] for column in by): row[what or ROWS] or 0 for row in groups})


def _rows(
    store: Store, name: str, columns: Sequence[str], wanted: ds.Expression
) -> Iterator[dict[str, Any]]:
    table = store.table(name)
    if table is not None:
        dataset, _ = days_of(table, name, Days())
        for rows in rows_of(dataset, wanted, columns):
            yield from rows.to_pylist()


def _text(start: Any) -> str:
    return text_of(instant_of(start))
