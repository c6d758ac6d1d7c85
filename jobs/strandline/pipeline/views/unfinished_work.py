"""The part of a pipeline's state that `status` shows: to recompute, missing, open, settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import groupby, pairwise
from typing import Any

import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from strandline.errors import InputError, RetryableError, StrandlineError, problem_of, storage_error
from strandline.lake.landing.changed_results import dates_to_use_again
from strandline.lake.landing.known_columns import columns_in_lake
from strandline.lake.landing.results_log import ResultsLog
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.days import Days, facts_of_files, read_days
from strandline.lake.store.lake import Lake
from strandline.lake.store.reads import dataset_of, in_arrow, rows_on_days
from strandline.lake.store.store import Store
from strandline.model.intervals import instant_of, text_of, text_or_none
from strandline.pipeline.request.layout import EditedRules, require_same_layout
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.quality.report.held_back_by import HeldBack
from strandline.spec.chained import ResultsSpec
from strandline.spec.expressions import problems_of

_KNOWN_BY_FILES = {
    "num_records",
    *("min.slot_start", "max.slot_end", "min.spec_fingerprint", "max.spec_fingerprint"),
}
"""The facts of a file in the log that give its settings without opening it."""


@dataclass(frozen=True)
class RulesRange:
    """Neighbouring published slots with the same settings."""

    spec_fingerprint: str
    start_ms: int
    end_ms: int
    slots: int


def unfinished_work(read: ReadPipeline, evaluated: HeldBack | None) -> dict[str, Any]:
    """The work that earlier runs have left for later ones.

    Args:
        read: the pipeline.
        evaluated: the watermark by the evaluated arrivals (`evaluated_watermark`).

    Returns:
        `owed`: the arrival days still to recompute; `lost`: the days that were observed with more
        rows than the landing table had at the last run; `rules`: the ranges of slots by the
        fingerprint of their settings, each with the keys `edited_since`; `overridden`: the ranges
        with overridden settings (`OverriddenRange`); `open_behind_watermark`: the number of open
        slots that the watermark at the frontier, or at the first day to recompute, has passed (must
        be 0 after a run);
        `open_by_other_rules`: the number of these by another source, watermark or window than the
        file's (of an earlier version's runs: or another allowed lateness);
        `sessions_across_rules`: the number of sessions that extend over a border between settings;
        `upstream`: the pipeline whose results are read (`_upstream`); `refused`: why every run
        is refused: the published rows have another window or key than the file, or a table that
        it reads is missing, or has other columns.
    """
    state, ranges = read.state, _ranges_by_rules(read.store)
    edited = EditedRules.of(read.spec, state)
    behind, by_other_rules = _open_behind_watermark(read, evaluated, edited)
    return {
        "owed": [day.isoformat() for day in state.days_to_recompute],
        "lost": [day.isoformat() for day in state.missing_days],
        "rules": [
            {
                "spec_fingerprint": one.spec_fingerprint,
                "start": text_of(one.start_ms),
                "end": text_of(one.end_ms),
                "slots": one.slots,
                "edited_since": edited.since(one.spec_fingerprint),
            }
            for one in ranges
        ],
        "overridden": [one.to_json() for one in state.overridden],
        "open_behind_watermark": behind,
        "open_by_other_rules": by_other_rules,
        "sessions_across_rules": _across(read, ranges),
        "upstream": _upstream(read),
        "refused": [str(problem) for problem in _refused(read)],
    }


def _refused(read: ReadPipeline) -> list[InputError]:
    """The problems for which every run is refused before it has a step in the ledger."""
    spec, problems = read.spec, list[InputError]()
    try:
        require_same_layout(spec, read.state, recreate=False)
    except InputError as problem:
        problems.append(problem)
    try:
        columns, _ = columns_in_lake(read.store.lake, spec, has_landed=True)
    except InputError as problem:
        return [*problems, problem]
    return [*problems, *problems_of(spec, columns, spec.pipeline)]


def _upstream(read: ReadPipeline) -> dict[str, Any] | None:
    """The pipeline whose results are read, and its frontier; None: it reads a landing table.

    `waits` is why runs do not read its results yet, `changed` are the dates of results that have
    changed since they were used (`dates_to_use_again`). If its tables cannot be read, `problem` is
    why.
    """
    spec, lake = read.spec, read.store.lake
    if not isinstance(spec, ResultsSpec):
        return None
    name, waits, changed = spec.upstream.pipeline, None, list[date]()
    try:
        reached_ms = Ledger(lake.pipeline(name)).state().frontier_ms
        if reached_ms is not None:
            waits, changed = _use_of_results(spec, lake, read.state)
    except (DeltaError, OSError, StrandlineError) as error:
        known = storage_error(name, error, to_read=True)
        problem = str(known) if known else problem_of(error)
        found = {"pipeline": name, "processed_up_to": None, "waits": None}
        return {**found, "changed": [], "problem": problem}
    return {
        "pipeline": name,
        "processed_up_to": text_or_none(reached_ms),
        "waits": waits,
        "changed": [day.isoformat() for day in changed],
    }


def _use_of_results(
    spec: ResultsSpec, lake: Lake, state: PipelineState
) -> tuple[str | None, list[date]]:
    """Why each run over another pipeline's results is to be tried again later; None: it is not.

    And the dates of results that have changed since they were used; none while runs wait.
    """
    try:
        log = ResultsLog.published(lake, spec)
    except RetryableError as error:
        return f"{error.problem}; {error.way_out}", []
    return None, dates_to_use_again(log, spec, state)


def _ranges_by_rules(store: Store) -> list[RulesRange]:
    """Ranges of neighbouring slots with the same settings; from the log where a day has one."""
    pieces = sorted(_pieces(store), key=lambda piece: (piece.start_ms, piece.end_ms))
    ranges = []
    for fingerprint, found in groupby(pieces, key=lambda piece: piece.spec_fingerprint):
        of_range = list(found)
        end_ms = max(piece.end_ms for piece in of_range)
        slots = sum(piece.slots for piece in of_range)
        ranges.append(RulesRange(fingerprint, of_range[0].start_ms, end_ms, slots))
    return ranges


def _pieces(store: Store) -> Iterator[RulesRange]:
    """A piece for each file, or for each row of a day with several settings or with many gaps."""
    files = facts_of_files(store, "completeness")
    known = _KNOWN_BY_FILES & files.keys()
    rows = [dict(zip(files, row, strict=True)) for row in zip(*files.values(), strict=True)]
    mixed: list[date] = []
    rows.sort(key=lambda row: row["day"] or date.min)
    for day, found in groupby(rows, key=lambda row: row["day"]):
        of_day = [row for row in found if row["num_records"] != 0]
        rules = {row.get(f"{end}.spec_fingerprint") for row in of_day for end in ("min", "max")}
        if (
            len(rules) > 1
            or None in rules
            or known != _KNOWN_BY_FILES
            or any((row.get("max.slots") or 1) > 1 for row in of_day)  # a row of many gaps
        ):
            mixed.append(day)
            continue
        for row in of_day:
            start_ms, end_ms = instant_of(row["min.slot_start"]), instant_of(row["max.slot_end"])
            rule = str(row["min.spec_fingerprint"])
            yield RulesRange(rule, start_ms, end_ms, row["num_records"])
    for slot in _slots_of(store, mixed):
        start_ms, end_ms = instant_of(slot["slot_start"]), instant_of(slot["slot_end"])
        yield RulesRange(str(slot["spec_fingerprint"]), start_ms, end_ms, slot.get("slots") or 1)


def _slots_of(store: Store, days: list[date]) -> list[dict[str, Any]]:
    columns = ["slot_start", "slot_end", "spec_fingerprint", "slots"]
    asked = ("completeness", columns, Days(), rows_on_days("slot_date", days))
    rows = read_days(store, *asked) if days else None
    return [] if rows is None else list(rows.to_pylist())


def _open_behind_watermark(
    read: ReadPipeline, evaluated: HeldBack | None, edited: EditedRules
) -> tuple[int, int]:
    """The numbers of open slots that the watermark by evaluated arrivals has passed.

    Returns all of them; and the slots by rules with which the watermark may be another one.
    """
    table, frontier_ms = read.store.table("completeness"), read.state.frontier_ms
    if table is None or frontier_ms is None or read.spec.watermark.lag_ms is not None:
        return 0, 0
    if evaluated is None or evaluated.watermark_ms is None:
        return 0, 0
    passed = in_arrow(evaluated.watermark_ms + 1)
    behind = (ds.field("state") == "open") & (ds.field("slot_end") <= passed)
    slots = dataset_of(table, "state = 'open'")
    by_other_rules = behind & ~ds.field("spec_fingerprint").isin(_of_same_watermark(read, edited))
    return slots.count_rows(filter=behind), slots.count_rows(filter=by_other_rules)


def _of_same_watermark(read: ReadPipeline, edited: EditedRules) -> list[str]:
    """The fingerprints of published settings by which the watermark reaches windows as by the file.

    An edit of the allowed lateness makes another timeline, as one of the watermark does: of runs of
    earlier versions it is not known which it was.
    """
    spec, published = read.spec, read.state.published
    timelines = {run.spec_fingerprint: run.timeline_fingerprint for run in published}
    same = {spec.spec_fingerprint}
    for rules, timeline in timelines.items():
        keys = edited.since(rules)
        if keys is None:
            is_same = timeline == spec.timeline_fingerprint
        else:
            is_same = spec.behind_the_watermark.issuperset(keys)
        if is_same:
            same.add(rules)
    return sorted(same)


def _across(read: ReadPipeline, ranges: list[RulesRange]) -> int:
    """The number of published sessions that extend into slots with other settings."""
    table = read.store.table("windows")
    if table is None or not read.spec.window.merging:
        return 0
    count = 0
    for _, later in pairwise(ranges):
        border, named = in_arrow(later.start_ms), text_of(later.start_ms)
        across = (ds.field("window_start") < border) & (ds.field("window_end") > border)
        files = f"window_start < '{named}' AND window_end > '{named}'"
        count += int(dataset_of(table, files).count_rows(filter=across))
    return count
