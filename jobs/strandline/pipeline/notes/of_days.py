"""Notes about the arrival days of the landing table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date

from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.repeated_files import repeated_rows
from strandline.model.intervals import days_named, text_of
from strandline.pipeline.observe.observation import Observation
from strandline.pipeline.plan.plan import Plan
from strandline.spec.pipeline import PipelineSpec
from strandline.visible import number_of


def of_days_to_come(days: Sequence[date]) -> Iterator[str]:
    """A note about landed rows of arrival days that have not begun."""
    if days:
        yield (
            f"rows have landed of {days_named(days)}, which {'have' if len(days) > 1 else 'has'} "
            "not begun: they are not read yet"
        )


def of_repeated_loads(spec: PipelineSpec, log: LandingLog, days: Collection[date]) -> Iterator[str]:
    """A note about rows of newly observed days that look like a load that was repeated.

    None where duplicates are malformed, or results of another pipeline are read.
    """
    if spec.reads_results_of is not None:
        return
    for name, side in spec.sides.items():
        if side.source.deduplicate is not None:
            continue
        found = repeated_rows(log.of_sides[name], side.source.arrival_date, days)
        if found:
            rows = number_of(sum(found.values()), "row")
            yield (
                f"{rows} of {days_named(sorted(found))} in files of {side.source.table} that have "
                "the size, the number of rows and the column statistics of another file of the "
                "day: if a load was repeated, its records count twice; remove one of both, or name "
                "what identifies a record in source.deduplicate"
            )


def of_changed_days(spec: PipelineSpec, observation: Observation, plan: Plan) -> Iterator[str]:
    """Notes about changed days that had been observed, and what the run does about them."""
    status, since_ms = observation.status, plan.scope.older_since_ms
    if recreated := sorted(status.changes.recreated & {*observation.new_days}):
        table = spec.source.table if spec.reads_results_of else "the landing table"
        yield (
            f"{table} was created again (its id is another one): "
            f"{number_of(len(recreated), 'arrival day')} ({days_named(recreated)}) observed again, "
            "and the differences are published"
        )
    if plan.to_recompute:
        what = "left to the next scheduled run"
        if plan.settles:
            what = "recomputed by this run"
        elif plan.missing:
            what = "to recompute once the missing rows have landed again, or are accepted as lost"
        days = days_named(plan.to_recompute)
        yield f"{days} changed after being observed, or landed late: {what}"
    if plan.to_recompute and since_ms is not None:
        yield f"everything that arrived from {text_of(since_ms)} on is evaluated again"
    if accepted := sorted(status.accepted & status.changes.missing):
        yield (
            f"rows of {days_named(accepted)} have disappeared from {spec.input_in_words} since "
            "they were observed: the loss is accepted (--accept-loss), once this run has published"
        )
    elsewhere = sorted(status.missing - set(plan.missing))
    if elsewhere:
        yield (
            f"rows of {days_named(elsewhere)} are missing from {spec.input_in_words} since they "
            "were observed; nothing of this run needs them"
        )
