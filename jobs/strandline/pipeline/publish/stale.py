"""Whether a staging that waits to be published is still what its run would compute."""

from __future__ import annotations

from strandline.lake.landing.changed_results import ranges_over
from strandline.lake.landing.joined_log import JoinedLog
from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.results_log import ResultsLog
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.commits import days_changed
from strandline.model.facts_of_two import ids_of_two
from strandline.spec import PipelineSpec
from strandline.spec.chained import ResultsSpec


def changed_since(
    spec: PipelineSpec, state: PipelineState, run: Entry, log: LandingLog | None
) -> str | None:
    """The change that has made a staging stale; None: it is not stale.

    Args:
        spec: the pipeline.
        state: its state, by its ledger.
        run: the last step of the run that has staged it.
        log: the landing's log; None: it is not compared.
    """
    if (erased := state.erased_since(run.base)) is not None:
        return f"{erased.run_id} has since erased rows that it may contain"
    for other in state.published_since(run):
        return (
            f"run {other.run_id} has published into its range, or into older slots of "
            "its late records, since"
        )
    rules = (spec.spec_fingerprint, spec.timeline_fingerprint)
    keeps_firings = "firings" in run.to_publish.parts
    if rules != (run.spec_fingerprint, run.timeline_fingerprint) or keeps_firings != spec.firings:
        return "the pipeline's rules have changed since"
    if log is not None and log.is_another(run.landing_id):
        return f"{_created_again(spec, log, run.landing_id)} created again since"
    if isinstance(spec, ResultsSpec) and isinstance(log, ResultsLog):
        return _of_results(spec, run, log)
    if log is not None and not _same_landing(spec, run, log):
        return f"{spec.source.table} has other files before its data cut-off since"
    return None


def _created_again(spec: PipelineSpec, log: LandingLog, table_id: str | None) -> str:
    """The landing tables that have other ids, and `was` or `were`; of two, maybe only one has."""
    names = [spec.source.table]
    if isinstance(log, JoinedLog) and table_id is not None:
        ids = zip(log.of_sides.items(), ids_of_two(table_id), strict=True)
        others = [side for (side, of_side), one in ids if of_side.is_another(one)]
        names = [*dict.fromkeys(spec.sides[side].source.table for side in others)] or names
    return f"{' and '.join(names)} {'were' if len(names) > 1 else 'was'}"


def _same_landing(spec: PipelineSpec, run: Entry, log: LandingLog) -> bool:
    """Whether the landing table still has the rows that a run has read, up to its horizon.

    Rows that were only rewritten into other files count as changed.
    """
    if run.horizon_ms is None:
        return False
    return log.has_rows_read_by(run, spec.source.arrival_date, run.horizon_ms)


def _of_results(spec: ResultsSpec, run: Entry, log: ResultsLog) -> str | None:
    """The change of the other pipeline's results, or of its watermark; None: there is none.

    What the other pipeline has published since does not matter if it changed no result of the
    staged windows, and no watermark before the horizon. This is known only where `by_slots` holds
    and the other pipeline reads a landing table itself; elsewhere each change counts.
    """
    kept, version = run.to_publish.input_id or log.input_id, run.landing_version
    dates = None if version is None else days_changed(log.table, "window_date", version)
    if dates is None:
        return f"whether {spec.input_in_words} have changed since is not known any more"
    if dates and not spec.by_slots:
        return f"{spec.input_in_words} have changed since"
    if run.touched is None or any(map(run.touched.overlaps, ranges_over(dates, spec))):
        return f"{spec.input_in_words} have changed in its windows since"
    is_known = spec.by_slots and spec.upstream.reads_results_of is None
    goes_on = is_known and run.horizon_ms is not None and log.goes_on_since(kept, run.horizon_ms)
    if kept != log.input_id and not goes_on:
        return f"{spec.input_in_words} were published again since, maybe with another watermark"
    return None
