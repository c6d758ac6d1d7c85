"""Timelines that wrap another one."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from strandline.engine.timeline import Timeline


@dataclass(frozen=True)
class OverTimeline:
    """A timeline that passes on the parts of another one which it does not change.

    Attributes:
        timeline: the other one.
    """

    timeline: Timeline

    @property
    def day_map(self) -> pd.DataFrame:
        """See `Timeline`."""
        return self.timeline.day_map

    @property
    def malformed(self) -> pd.DataFrame:
        """See `Timeline`."""
        return self.timeline.malformed
