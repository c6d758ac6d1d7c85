"""Notes about how windows are computed, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.spec.pipeline import PipelineSpec
from strandline.spec.runnable import times_of_a_window


def of_form(spec: PipelineSpec) -> Iterator[str]:
    """Notes about how windows are replayed, and what that costs."""
    if spec.window.all_time:
        yield (
            "windows of all time: whole history. Every run reads all that has landed, whatever "
            "range is asked for, and publishes what differs: a day does not cost a day"
        )
    if spec.process is not None:
        yield (
            f"process: per group in workers. The records that firings hold are handed to a Python "
            f"worker, which calls {spec.process.name} once a firing; its executors need what the "
            "function imports"
        )
    if spec.has_pairs_of_windows:
        yield (
            "pairs: sets. Each left record of a firing is put beside each right one, once for each "
            "firing that holds both"
        )
    if not spec.is_replayed:
        return
    yield (
        "firings: replayed in workers. The accepted records of each window of a key, of sessions "
        "the records of one session, are sorted and go one by one through a Python worker, which "
        "holds some such groups at a time; its executors need Python with pyarrow"
    )
    if spec.fires_at_times and not (spec.window.merging or spec.window.all_time):
        most = times_of_a_window(spec)
        yield (
            f"early firings: a window of a key fires up to {most:,} times before its end: as many "
            "more rows of firings"
        )
