"""The rebuilds that a pipeline over results needs after the other pipeline has changed some.

Changed results change only the windows that they belong to. A changed watermark may change whatever
a scheduled run computes from the first arrival day on that was observed again. Kept windows that a
run with overridden rules has published are rebuilt by these rules, over the results as they are
now.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from deltalake.exceptions import DeltaError

from strandline.engine.position.grid import Grid
from strandline.lake.landing.changed_results import (
    has_changed,
    last_over_all,
    open_from,
    ranges_changed,
)
from strandline.lake.landing.landing import Landing
from strandline.lake.landing.results_landing import ResultsLanding
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.in_force import OverriddenRange
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.commits import days_changed
from strandline.lake.store.store import Store
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import read_facts
from strandline.model.intervals import END_OF_INSTANTS_MS, parts_outside
from strandline.pipeline.plan.open_slots import closed_part, states_in
from strandline.pipeline.request.request import Request
from strandline.spec.pipeline import PipelineSpec


def of_changed_results(
    landing: Landing, request: Request, state: PipelineState, store: Store
) -> list[Request]:
    """The runs that a scheduled run does first: rebuilds of windows whose results have changed.

    Closed windows by the pipeline's file, and kept windows by the rules that have published them.
    One run for each range. If the scheduled run dies before publishing, they are done again.

    Args:
        landing: the results; any other landing needs no such run.
        request: the requested run.
        state: the pipeline's state, by its own ledger.
        store: the pipeline's tables.
    """
    scheduled = request.kind == "advance" and not request.recreate
    if not (scheduled and isinstance(landing, ResultsLanding)):
        return []
    kept = list(_kept(landing, state, store))
    changed = ranges_changed(landing.log, landing.spec, state)
    ranges = parts_outside(changed, [one.windows for one in kept])
    first = replace(
        request,
        kind="backfill",
        to_ms=None,
        started_by=request,
        accept_loss=None,  # results lack no rows, and rules of one run alone accept none
        reason=f"results of {landing.spec.upstream.pipeline} have changed",
    )
    asked = [
        *((within, state.largest_horizon(within), {}) for within in ranges),
        *(
            (one.windows, one.horizon_ms, one.overrides)
            for one in kept
            if has_changed(one, landing.log, landing.spec)
        ),
    ]
    return [
        replace(
            first,
            range=within,
            run_key=f"{first.run_key}/{within.start_ms}" if first.run_key else None,
            as_of_ms=_horizon_of(published_ms, landing, request.until_ms),
            overrides=overrides,
        )
        for within, published_ms, overrides in asked
    ]


def _kept(landing: ResultsLanding, state: PipelineState, store: Store) -> Iterator[OverriddenRange]:
    """The closed parts of overridden ranges, which scheduled runs keep."""
    if landing.spec.why_overridden_is_redone is not None:
        return
    for one in state.overridden:
        states = states_in(store, one.windows)
        windows = closed_part(one.windows, states, Grid.of(landing.spec).span_ms)
        if windows is not None:
            yield replace(one, windows=windows)


def _horizon_of(published_ms: int | None, landing: ResultsLanding, until_ms: int) -> int:
    """The horizon of a range's rebuild: no earlier than its own, if the results are known so far.

    Args:
        published_ms: the largest horizon of the runs that have published the range; None: unknown.
        landing: the results.
        until_ms: the midnight of the scheduled run.
    """
    if published_ms is None:
        return until_ms
    return max(until_ms, min(published_ms, landing.log.horizon_ms))


def left_to_scheduled_run(state: PipelineState) -> int:
    """The start of the first window that the rebuilds of changed results leave to a scheduled run.

    The end of all instants if no run over everything has published.
    """
    last = last_over_all(state)
    return END_OF_INSTANTS_MS if last is None else open_from(last)


def days_observed_since(spec: PipelineSpec, state: PipelineState, store: Store) -> set[date]:
    """The arrival days observed since a run over everything: new days, and days with other rows.

    Rows that land late in the other pipeline's landing table move its watermark, also where no
    result changes. Other rules observe every day again, which changes no row of it. The first of
    all days if the days are not known; none without such a run.

    Args:
        spec: the pipeline.
        state: the pipeline's state, by its ledger.
        store: the pipeline's tables.
    """
    last, timeline = last_over_all(state), store.table("timeline")
    if last is None or timeline is None:
        return set()
    version = _timeline_known_to(last, state)
    if version is None:
        return {date.min}
    if last.timeline_fingerprint == spec.timeline_fingerprint:
        days = days_changed(timeline, "arrival_date", version)
    else:
        days = _days_with_other_facts(store, version)
    return {date.min} if days is None else days


def _days_with_other_facts(store: Store, version: int) -> set[date] | None:
    """The arrival days whose facts differ from a version of the timeline; None: it is missing."""
    now = read_facts(TimelineTable.open(store))
    try:
        then = read_facts(TimelineTable.open(store, version=version))
    except (DeltaError, OSError):  # upkeep has removed its files
        return None
    contents = [{day: facts.content for day, facts in one.items()} for one in (now, then)]
    return {day for day, _ in contents[0].items() ^ contents[1].items()}


def _timeline_known_to(run: Entry, state: PipelineState) -> int | None:
    """The version of the timeline that a run has known; None: it is not known.

    If another run has observed days meanwhile, it is the last version before the run began.
    """
    meanwhile = any(
        step.step == "observed" and run.base < step.position < run.position
        for step in state.steps
        if step.run_id != run.run_id
    )
    known = [step for step in state.whole if step.position <= run.base] if meanwhile else [run]
    return (known[-1].versions or {}).get("timeline") if known else None
