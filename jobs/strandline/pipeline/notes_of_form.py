"""notes: in which form windows are computed, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.engine.calendar.timers import most_times
from strandline.engine.position.grid import Grid
from strandline.engine.walks import walked
from strandline.engine.windows import order
from strandline.spec.joined import WindowPairsSpec
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import WindowOfAllTime


def of_form(spec: PipelineSpec) -> Iterator[str]:
    """In which form windows are computed that sets alone do not tell, and what that costs."""
    if isinstance(spec.window, WindowOfAllTime):
        yield (
            "windows of all time: whole history. Every run reads all that has landed, whatever "
            "range is asked for, and publishes what differs: a day does not cost a day"
        )
    if spec.process is not None:
        yield (
            f"process: per group in workers. The records that a firing tells are fed to a Python "
            f"worker, which holds those of one firing at a time and calls {spec.process.name}; its "
            "executors need Python with pyarrow, and what the function imports"
        )
    if isinstance(spec, WindowPairsSpec):
        yield (
            "pairs: sets. The records of a firing are gathered in one row, and each left one meets "
            "each right one: once for each firing that holds both"
        )
    if walked.needs_a_walk(spec):
        yield (
            "firings: per group in workers. The accepted records of each window of a key, of "
            "sessions those that hang together, are fed to a Python worker, which holds one such "
            "group at a time and walks over it; its executors need Python with pyarrow. Each "
            "record is then counted once for each firing that tells it"
        )
        return
    if spec.fires_at_times:
        most = most_times(Grid.of(spec)) - 1
        yield (
            "early firings: sets. Records are added up by the firing that holds them first. A "
            f"window of a key fires up to {most:,} times before its end: as many more rows of "
            "firings, and for each window as many more thresholds in the timeline"
        )
    if spec.lets_records_go and not spec.goes_by_order:
        yield (
            "records that firings let go: sets. The records of a window are counted once as "
            "accepted, and once as what its last firing held"
        )
    elif spec.goes_by_order and order.needs_a_walk(spec):
        yield (
            "records by their order: per group in workers. The records of each window of a key are "
            "fed to a Python worker, which holds one such group at a time and walks over it; its "
            "executors need Python with pyarrow"
        )
    elif spec.goes_by_order:
        yield (
            "records by their order: window functions. The records of each window of a key are "
            "sorted, where other windows are only added up: some five times as much work"
        )
