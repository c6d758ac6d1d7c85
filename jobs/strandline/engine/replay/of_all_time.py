"""The rebuild by a replay of windows of all time."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.engine.replay.grid import ReplayedWindows
from strandline.errors import InputError
from strandline.spec.runnable import MOST_TIMES
from strandline.spec.trigger import Continuous


@dataclass(frozen=True)
class ReplayedOfAllTime(ReplayedWindows):
    """The rebuild of global and counting windows, which only the end of the input closes."""

    @property
    def _until_ms(self) -> int:
        """The watermark that the replay ends with, in ms.

        Raises:
            InputError: the windows would fire for ever, as the input has ended; or they would have
                fired too often by now, each time with all of their records.
        """
        if self.clock.closures:
            ends, way_out = ", as in Flink", "let the input go on"
            if not self.clock.closes_now:
                ends, way_out = ", as an earlier run has ended the input", "give backfill --reopen"
            raise InputError(
                f"{self._spec.pipeline}: trigger.continuous",
                f"a global window would fire at every multiple up to the end of time{ends}",
                f"{way_out}, or choose another trigger",
            )
        until_ms = super()._until_ms
        self._refuse_too_many_times(until_ms)
        return until_ms

    def _refuse_too_many_times(self, until_ms: int) -> None:
        spec, events = self._spec, self.history.days.events
        trigger = spec.fires_by
        if events is None or trigger.purging or not isinstance(trigger, Continuous):
            return
        times = (until_ms - events.start_ms) // trigger.continuous
        if times > MOST_TIMES:
            raise InputError(
                f"{spec.pipeline}: trigger.continuous",
                f"a window of all time that holds the earliest record would have fired {times:,} "
                f"times by now, more than {MOST_TIMES:,}, and emits all of its records each time",
                "give a longer interval, let it be purging, or choose windows that end",
            )
