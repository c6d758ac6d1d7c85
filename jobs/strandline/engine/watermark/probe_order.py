"""The probe order of a pipeline's channels: as declared, or in the order in which they joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from strandline.engine.position.axis import Axis
from strandline.engine.timeline import Timeline, instants_of
from strandline.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class ProbeOrder:
    """The channels in the order in which a tick probes them.

    Attributes:
        channels: their names.
        joined: the first instant at which each takes part: always, or from its first record on.
    """

    channels: tuple[str, ...]
    joined: list[int]

    @property
    def tied(self) -> dict[str, int]:
        """The channels that joined at the same instant as another one, with that instant."""
        pairs = dict(zip(self.channels, self.joined, strict=True))
        newcomers = Counter(self.joined)
        return {channel: at for channel, at in pairs.items() if newcomers[at] > 1}

    def broken_by(self, behind: Mapping[str, tuple[int, int]]) -> ProbeOrder:
        """The order with ties broken by (sequence, event time) of the channels' first records."""
        joined = dict(zip(self.channels, self.joined, strict=True))
        order = sorted(joined, key=lambda name: (joined[name], behind.get(name, ()), name))
        return ProbeOrder(tuple(order), [joined[name] for name in order])


def probe_order(
    timeline: Timeline, spec: PipelineSpec, axis: Axis, known: tuple[str, ...] | None = None
) -> ProbeOrder:
    """The probe order by first instants; ties are ordered by name.

    `known`: the discovered channels in probe order; None: not known yet.
    """
    declared = spec.source.declared_channels
    if declared is not None:
        return ProbeOrder(declared, [-axis.never] * len(declared))
    days = timeline.channel_days
    instants = pd.Series(instants_of(days, axis), index=days.index, dtype=object)
    found = instants.groupby(days["channel"]).min().items()
    first = {str(channel): int(at) for channel, at in found}
    order = known or tuple(sorted(first, key=lambda channel: (first[channel], channel)))
    return ProbeOrder(order, [first[channel] for channel in order])
