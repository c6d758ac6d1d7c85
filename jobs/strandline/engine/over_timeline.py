"""Timelines made of another one."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from strandline.engine.timeline import Timeline


@dataclass(frozen=True)
class OverTimeline:
    """What a timeline made of another one has from it as it is.

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
