"""Pipelines whose records are the results of another pipeline's windows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from strandline.spec.pipeline import (
    BEHIND_THE_WATERMARK,
    PipelineSpec,
    digest,
    refuse_names_in_use,
)
from strandline.spec.source import Key, Source
from strandline.spec.values import PipelineName, SpecModel
from strandline.spec.watermark import NoWatermarks
from strandline.spec.windowed import WindowedSpec

WHEN_PUBLISHED: Literal["published"] = "published"
"""The value of `schedule` for a run after each publication of the other pipeline."""


class Upstream(SpecModel):
    """Another pipeline's results as a source; every `Expression` is one of its columns or SQL.

    A result's event time is the last millisecond of its window, its arrival the instant of its
    firing, and the watermark is the other pipeline's own.

    Attributes:
        pipeline: the other pipeline.
        table: `windows`, the last firing of each; or `firings`, every one.
        key: the key columns, as for any source; [] is one window for all records.
    """

    pipeline: PipelineName
    table: Literal["windows", "firings"] = "windows"
    key: Key = Field(default_factory=dict)


def _when_published(value: Any) -> Any:
    if value not in {None, WHEN_PUBLISHED}:
        msg = (
            "not a schedule of a pipeline that reads results, which runs when the other one has "
            "published; leave it out, or write null for runs by hand only"
        )
        raise ValueError(msg)
    return value


class ChainedSpec(WindowedSpec):
    """Windows over the results of another pipeline's windows."""

    source: Upstream
    schedule: Annotated[Literal["published"] | None, BeforeValidator(_when_published)] = (
        WHEN_PUBLISHED
    )

    @model_validator(mode="after")
    def _result_columns_are_distinct(self) -> ChainedSpec:
        refuse_names_in_use(self.source.key, self.aggregates, self.returns)
        return self

    def over(self, upstream: PipelineSpec) -> ResultsSpec:
        """The runnable pipeline, whose records are the results of the other pipeline."""
        fields = {name: getattr(self, name) for name in WindowedSpec.model_fields}
        return ResultsSpec.model_construct(
            **fields | {"schedule": None},
            source=Source(
                table=f"{upstream.pipeline}/firings",
                arrival_time="fired_at",
                event_time="window_end - INTERVAL '0.001' SECOND",
                key=self.source.key,
                id=("window_start", "window_end", *upstream.source.key, "firing"),
            ),
            watermark=NoWatermarks(strategy="none"),
            upstream=upstream,
            last_firings=self.source.table == "windows",
            when_published=self.schedule is not None,
        )


class ResultsSpec(PipelineSpec):
    """A pipeline whose records are results: rows of the other pipeline's table `firings`.

    It has no watermark of its own: the other pipeline's goes on.

    Attributes:
        upstream: the other pipeline.
        last_firings: whether only the last firing of each window counts.
        when_published: whether it runs after each publication of the other pipeline.
    """

    upstream: PipelineSpec
    last_firings: bool
    when_published: bool

    @property
    def reads_results_of(self) -> str:
        """See `PipelineSpec`."""
        return self.upstream.pipeline

    @property
    def landing_tables(self) -> list[str]:
        """None: see `PipelineSpec`."""
        return []

    @property
    def by_slots(self) -> bool:
        """Whether a changed result changes only the slots of its event time.

        False for sessions, and for windows that fire before their ends.
        """
        return not self.fires_at_times and not self._has_sessions

    @property
    def why_overridden_is_redone(self) -> str | None:
        """See `PipelineSpec`; also sessions, here or upstream, as they can merge or split."""
        why = super().why_overridden_is_redone
        if why is None and self._has_sessions:
            return "a changed result can merge sessions, or split them"
        return why

    @property
    def _has_sessions(self) -> bool:
        """Whether the windows of this pipeline, or of the other one, are sessions."""
        return self.window.merging or self.upstream.window.merging

    @property
    def spec_fingerprint(self) -> str:
        """See `PipelineSpec`; it covers the other pipeline's rules, which decide the results."""
        return self._with_upstream(super().spec_fingerprint)

    @property
    def timeline_fingerprint(self) -> str:
        """See `PipelineSpec`; it covers the other pipeline's rules, which decide the results."""
        return self._with_upstream(super().timeline_fingerprint)

    @property
    def rules(self) -> dict[str, str]:
        """See `PipelineSpec`; all of the other pipeline's under one name, which is no key."""
        source = {
            "source.pipeline": self.upstream.pipeline,
            "source.table": "windows" if self.last_firings else "firings",
            "source.key": digest(*sorted(self.source.key.items())),
            f"the rules of pipeline {self.upstream.pipeline}": self.upstream.spec_fingerprint,
        }
        return source | self.hashes("window", *BEHIND_THE_WATERMARK)

    def _with_upstream(self, own: str) -> str:
        return digest(own, self.upstream.spec_fingerprint, self.last_firings)
