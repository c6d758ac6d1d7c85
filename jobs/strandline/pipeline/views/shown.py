"""A pipeline between runs: its tables and its state, from which all views are made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from strandline.lake.ledger.ledger import Ledger
from strandline.lake.read import tables_shown
from strandline.lake.store.lake import Lake
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import read_event_times
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.pipeline.views.channels import ChannelWatermarks, channel_watermarks
from strandline.pipeline.views.findings import findings_of
from strandline.pipeline.views.incomplete import Causes
from strandline.pipeline.views.read_pipeline import ReadPipeline
from strandline.pipeline.views.unfinished_work import unfinished_work
from strandline.pipeline.views.watermark import (
    closed_up_to,
    evaluated_watermark,
    last_day_of,
    watermark_by,
)
from strandline.quality.findings.check import Finding
from strandline.quality.report.held_back_by import HeldBack
from strandline.spec import PipelineSpec


@dataclass(frozen=True)
class Shown(ReadPipeline):
    """A consistent set of a pipeline's tables, and what follows from them at first use.

    Attributes:
        notice: a notice about the tables; None: there is none.
    """

    notice: str | None

    @classmethod
    def of(cls, spec: PipelineSpec, lake: Lake) -> Shown:
        """A pipeline as its tables are now.

        Raises:
            InputError: nothing has run yet.
        """
        ledger = Ledger(lake.pipeline(spec.pipeline))
        state = ledger.state_after_runs()
        store, notice = tables_shown(ledger)
        return cls(spec, store, state, notice)

    @cached_property
    def channels(self) -> ChannelWatermarks:
        """The watermarks of the channels after `last_day_of`."""
        return channel_watermarks(self, last_day_of(self.spec, self.state))

    @cached_property
    def watermark(self) -> HeldBack | None:
        """See `watermark_by`."""
        return watermark_by(self.spec, self.channels, self.state)

    @cached_property
    def evaluated(self) -> HeldBack | None:
        """See `evaluated_watermark`."""
        return evaluated_watermark(self)

    @property
    def closed_ms(self) -> int | None:
        """See `closed_up_to`."""
        upstream = self.unfinished["upstream"] or {"changed": ()}
        changed = [date.fromisoformat(day) for day in upstream["changed"]]
        return closed_up_to(self.spec, self.state, self.evaluated, changed)

    @cached_property
    def unfinished(self) -> dict[str, Any]:
        """See `unfinished_work`."""
        return unfinished_work(self, self.evaluated)

    def findings(self, now_ms: int | None) -> list[Finding]:
        """See `findings_of`."""
        return findings_of(self, self.unfinished, now_ms)

    @cached_property
    def causes(self) -> Causes:
        """The reasons for which slots are not complete, by the pipeline's timeline and ledger."""
        changed, missing = self.state.days_to_recompute, list(self.state.missing_days)
        timeline = TimelineTable.open(self.store)
        first_ms = self.state.first_open_ms if self.spec.window.merging else None
        return Causes(
            self.spec,
            self.watermark,
            read_event_times(timeline, changed) if changed else {},
            read_event_times(timeline, missing) if missing else {},
            [closure.windows for closure in self.state.closures],
            None if first_ms is None else TimeRange(first_ms, EVERYTHING.end_ms),
        )
