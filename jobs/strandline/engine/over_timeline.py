"""The base class of timelines that wrap another one."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from strandline.engine.timeline import Timeline


@dataclass(frozen=True)
class OverTimeline:
    """A timeline that changes only some queries of another one.

    Attributes:
        timeline: the wrapped timeline.
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
