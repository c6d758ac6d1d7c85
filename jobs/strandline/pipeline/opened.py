"""What a run is based on: the ledger as it was before the landing table's log was opened.

Whoever writes a step after that may have published, observed or erased rows that the log does not
show as they are now.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strandline.errors import RetryableError
from strandline.lake.landing_log import LandingLog
from strandline.lake.ledger import Ledger
from strandline.lake.results_log import ResultsLog, log_of
from strandline.lake.state import PipelineState
from strandline.lake.store import Lake
from strandline.spec import PipelineSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strandline.pipeline.context import Context


@dataclass(frozen=True)
class OpenedLog:
    """The log of a landing table, and the ledger's position from before it was opened.

    Attributes:
        ledger: of the pipeline.
        log: None: only a catalog knows where the table lies.
        base: the position of the ledger's last step then; 0: there was none.
    """

    ledger: Ledger
    log: LandingLog | None
    base: int

    @classmethod
    def newest(cls, lake: Lake, spec: PipelineSpec) -> OpenedLog:
        """The log of the newest version.

        Raises:
            InputError: there is no such table, or the pipeline before has published nothing.
            RetryableError: the pipeline before has not yet run by its present rules.
        """
        ledger = Ledger(lake.pipeline(spec.pipeline))
        base = ledger.state().position
        return cls(ledger, log_of(lake, spec), base)

    def after(self, own: Collection[str]) -> OpenedLog:
        """The same after some runs of one's own, if nobody else has written a step since."""
        state = self.ledger.state()
        others = state.steps_of_others(self.base, own)
        return self if others else replace(self, base=state.position)


class RowsErasedError(RetryableError):
    """Rows were erased that a run may have read: it publishes nothing, and its staging goes."""


def brought_up_to_date(
    ctx: Context, base: int, own: Collection[str]
) -> tuple[Context, PipelineState, int]:
    """A run with its landing table as nobody has written the ledger since it was opened.

    Results are read as they were: what others have observed of newer ones is found as the run
    observes.

    Args:
        ctx: the run.
        base: the ledger's position from before its landing table was opened.
        own: the runs whose steps count for nothing: this one, and those that it has made first.

    Returns:
        The run, the pipeline's state, and the ledger's position from before the landing table was
        opened.

    Raises:
        RowsErasedError: results were read, and rows were erased since.
    """
    from strandline.lake.open_landing import open_landing  # noqa: PLC0415 - loads PySpark

    while True:
        state = ctx.ledger.state()
        if not state.steps_of_others(base, own):
            return ctx, state, state.position
        if isinstance(ctx.landing.log, ResultsLog):
            require_nothing_erased(ctx, base)
        else:
            opened = open_landing(ctx.spark, ctx.lake, ctx.spec, ctx.landing.now_ms)
            ctx = replace(ctx, landing=opened)
        base = state.position


def require_nothing_erased(ctx: Context, base: int) -> None:
    """No rows were erased since a run's base.

    Raises:
        RowsErasedError: some were.
    """
    erased = ctx.ledger.state().erased_since(base)
    if erased is not None:
        raise RowsErasedError(
            f"{ctx.spec.pipeline} run {ctx.run_id}",
            f"{erased.run_id} has erased rows that it may have read",
            "run it again: it publishes nothing, and keeps nothing of what it has staged",
        )


@contextmanager
def no_erased_rows_staged(ctx: Context) -> Iterator[None]:
    """Remove the staging of a run that may hold rows which were erased meanwhile."""
    try:
        yield
    except RowsErasedError:
        ctx.staging.drop()
        raise
