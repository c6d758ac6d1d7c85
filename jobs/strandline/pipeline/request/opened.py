"""The opened log of a run's landing table, and the ledger's position just before.

A step written after that position may have published, observed or erased rows that the opened log
does not show.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strandline.errors import RetryableError
from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.results_log import ResultsLog, log_of
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.spec import PipelineSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strandline.pipeline.request.context import Context


@dataclass(frozen=True)
class OpenedLog:
    """The log of a landing table, and the ledger's position before it was opened.

    Attributes:
        ledger: the pipeline's ledger.
        log: the log; None: the table's place is known to a catalog alone.
        base: the position of the ledger's last step at that time; 0: there was none.
    """

    ledger: Ledger
    log: LandingLog | None
    base: int

    @classmethod
    def newest(cls, lake: Lake, spec: PipelineSpec) -> OpenedLog:
        """The log of the newest version of the landing table.

        Raises:
            InputError: there is no such table, or the first pipeline has published nothing.
            RetryableError: the first pipeline has not yet run with its present settings.
        """
        ledger = Ledger(lake.pipeline(spec.pipeline))
        base = ledger.state().position
        return cls(ledger, log_of(lake, spec), base)

    @property
    def known_until_ms(self) -> int | None:
        """See `LandingLog.known_until_ms`; None also for a log that is not known."""
        return None if self.log is None else self.log.known_until_ms

    def after(self, own: Collection[str]) -> OpenedLog:
        """The same, based on the ledger after some own runs, if no other run has written since."""
        state = self.ledger.state()
        others = state.steps_of_others(self.base, own)
        return self if others else replace(self, base=state.position)


class RowsErasedError(RetryableError):
    """Rows that a run may have read were erased.

    It publishes nothing, and its staging is removed.
    """


def brought_up_to_date(
    ctx: Context, base: int, own: Collection[str]
) -> tuple[Context, PipelineState]:
    """A run whose landing table was opened after the last step of any other run, and the state.

    A landing of results is not opened again: newer observations of other runs are found when the
    run observes.

    Args:
        ctx: the run.
        base: the ledger's position from before its landing table was opened.
        own: the runs whose steps are ignored: this run, and runs that it has started first.

    Raises:
        RowsErasedError: results were read, and rows were erased since.
    """
    from strandline.lake.landing.open_landing import open_landing  # noqa: PLC0415 - loads PySpark

    while True:
        state = ctx.ledger.state()
        if not state.steps_of_others(base, own):
            return ctx, state
        if isinstance(ctx.landing.log, ResultsLog):
            require_nothing_erased(ctx, base)
        else:
            opened = open_landing(ctx.spark, ctx.lake, ctx.spec, ctx.landing.now_ms)
            ctx = replace(ctx, landing=opened)
        base = state.position


def require_nothing_erased(ctx: Context, base: int) -> None:
    """Refuse to go on if rows were erased since a run's base.

    Raises:
        RowsErasedError: rows were erased.
    """
    erased = ctx.ledger.state().erased_since(base)
    if erased is not None:
        raise RowsErasedError(
            f"{ctx.spec.pipeline} run {ctx.run_id}",
            f"{erased.run_id} has erased rows that it may have read",
            "run it again: it publishes nothing, and keeps nothing of what it has staged",
        )


@contextmanager
def staging_cleared(ctx: Context) -> Iterator[None]:
    """Remove the staging of a dry run at its end, and one that may hold rows erased meanwhile."""
    try:
        yield
    except RowsErasedError:
        ctx.staging.drop()
        raise
    finally:
        if ctx.dry_run:
            ctx.staging.drop()
