"""Runnable pipelines of two sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from strandline.spec.join import SIDES, Interval, IntervalJoinSpec, WindowJoinSpec, side_of
from strandline.spec.pipeline import BEHIND_THE_WATERMARK, PipelineSpec, digest
from strandline.spec.source import Source
from strandline.spec.watermark import NoWatermarks

PAIRS = "pairs"
"""The table of an interval join in place of `windows`, and of a window join in addition to it."""


class TwoSourcesSpec(PipelineSpec):
    """A pipeline over the records of two sources.

    Its channels are prefixed with the name of their side. Its watermark follows from the
    watermarks of both sides.

    Attributes:
        left: the left source as a pipeline.
        right: the right source as a pipeline.
    """

    left: PipelineSpec
    right: PipelineSpec

    @property
    def sides(self) -> dict[str, PipelineSpec]:
        """Both sides by their names."""
        return {"left": self.left, "right": self.right}

    def under(self, overrides: Mapping[str, str]) -> PipelineSpec:
        """See `PipelineSpec`; an overridden allowed lateness also applies to both sides."""
        spec = super().under(overrides)
        lateness = {"allowed_lateness": spec.allowed_lateness}
        sides = {name: side.model_copy(update=lateness) for name, side in self.sides.items()}
        return spec.model_copy(update=sides)

    @property
    def ids_of_sides(self) -> dict[str, tuple[str, ...]]:
        """See `PipelineSpec`."""
        sides = self.sides.items()
        return {name: tuple(side.source.id) for name, side in sides if side.source.id}

    @property
    def timeline_fingerprint(self) -> str:
        """See `PipelineSpec`."""
        return digest(*(side.timeline_fingerprint for side in self.sides.values()))

    @property
    def rules(self) -> dict[str, str]:
        """See `PipelineSpec`; source and watermark are those of each side."""
        return {
            f"sources.{name}": digest(*side.hashes("source", "watermark").values())
            for name, side in self.sides.items()
        }

    @property
    def behind_the_watermark(self) -> frozenset[str]:
        """See `PipelineSpec`; also `join`: the watermark follows from the two sources alone."""
        return super().behind_the_watermark | {"join"}

    @property
    def layout(self) -> dict[str, Any]:
        """See `PipelineSpec`; the key of each side."""
        return super().layout | {"key": {n: side.source.key for n, side in self.sides.items()}}


class JoinedSpec(TwoSourcesSpec):
    """An interval join: a pipeline whose results are pairs of records of two sources.

    Attributes:
        join: the interval between the event times of a pair.
    """

    result: ClassVar[str] = PAIRS

    join: Interval

    @classmethod
    def of(cls, spec: IntervalJoinSpec) -> JoinedSpec:
        """The runnable pipeline of a file with an interval join."""
        return cls.model_construct(**_of_both(spec), join=spec.join)

    @property
    def days_follow_each_other(self) -> bool:
        """See `PipelineSpec`; true if it is true for one of the sides."""
        return any(side.days_follow_each_other for side in self.sides.values())

    @property
    def kept_ms(self) -> dict[str, int]:
        """The time in ms for which a record of each side is kept in state after its event time."""
        return {"left": max(self.join.upper_ms, 0), "right": max(-self.join.lower_ms, 0)}

    @property
    def spec_fingerprint(self) -> str:
        """See `PipelineSpec`."""
        sides = (side.spec_fingerprint for side in self.sides.values())
        return digest(*sides, self.join.lower_ms, self.join.upper_ms)

    @property
    def rules(self) -> dict[str, str]:
        """See `PipelineSpec`; also the interval, and no window: the file has none."""
        return super().rules | {"join": digest(self.join.lower_ms, self.join.upper_ms)}

    @property
    def layout(self) -> dict[str, Any]:
        """See `PipelineSpec`; the layout of pairs does not depend on the interval."""
        return super().layout | {"window": PAIRS}


class CogroupSpec(TwoSourcesSpec):
    """A cogroup: windows over the records of two sources, whose channels share one valve."""

    @staticmethod
    def of(spec: WindowJoinSpec) -> CogroupSpec:
        """The pipeline that a file says."""
        kind = CogroupSpec if spec.join.window is None else WindowPairsSpec
        return kind.model_construct(**_of_both(spec))

    @property
    def days_follow_each_other(self) -> bool:
        """See `PipelineSpec`: the valve's state depends on all days before."""
        return True

    @property
    def rules(self) -> dict[str, str]:
        """See `PipelineSpec`; also the kind of join."""
        joined = {"join": type(self).__name__}
        return super().rules | joined | self.hashes("window", *BEHIND_THE_WATERMARK)

    @property
    def spec_fingerprint(self) -> str:
        """See `PipelineSpec`."""
        return digest("cogroup", *(side.spec_fingerprint for side in self.sides.values()))

    @property
    def timeline_fingerprint(self) -> str:
        """See `PipelineSpec`."""
        return digest("cogroup", super().timeline_fingerprint)


class WindowPairsSpec(CogroupSpec):
    """A window join: windows over two sources, whose results aggregate pairs of records.

    A pair is a record of the left source with a record of the right source. Aggregates read their
    columns as `left.COLUMN` and `right.COLUMN`; a window without a pair has no result.
    """

    has_pairs_of_windows: ClassVar[bool] = True

    @property
    def hands_over_records(self) -> bool:
        """See `PipelineSpec`."""
        return True

    @property
    def windows_count_all(self) -> bool:
        """See `PipelineSpec`: windows count pairs, and a window without a pair is not published."""
        return False

    @property
    def spec_fingerprint(self) -> str:
        """See `PipelineSpec`."""
        return digest("window", super().spec_fingerprint)


def _of_both(spec: IntervalJoinSpec | WindowJoinSpec) -> dict[str, Any]:
    left, right = (side_of(spec, name) for name in SIDES)
    fields = {name: getattr(left, name) for name in PipelineSpec.model_fields}
    return fields | {
        "source": _both(left.source, right.source),
        "watermark": NoWatermarks(strategy="none", emit="per_record"),
        "left": left,
        "right": right,
    }


def _both(left: Source, right: Source) -> Source:
    """The join of a value of the left and of the right source."""
    declared = [side.declared_channels for side in (left, right)]
    listed = [
        f"{name}/{channel}"
        for name, of_side in zip(SIDES, declared, strict=True)
        for channel in of_side or ()
    ]
    waits = [side.ready_after for side in (left, right) if side.ready_after is not None]
    return Source.model_construct(
        table=f"{left.table} and {right.table}",
        arrival_date=left.arrival_date,
        arrival_time=left.arrival_time,
        event_time=left.event_time,
        key={name: name for name in left.key},
        channel="channel",
        channels="discovered" if None in declared else tuple(listed),
        sequence=left.sequence,
        start=right.start if left.start is None else left.start,
        ready_after=max(waits, default=None),
    )
