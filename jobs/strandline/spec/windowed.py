"""Windows with their trigger, evictor, allowed lateness and result."""

from __future__ import annotations

from pydantic import Field, model_validator

from strandline.model.intervals import END_OF_INSTANTS_MS
from strandline.model.lateness import MAX_WATERMARK
from strandline.spec.common import CommonSpec
from strandline.spec.evictor import CountEvictor, Evictor, EvictorField
from strandline.spec.process import ProcessField, ReturnedType
from strandline.spec.trigger import (
    Continuous,
    Count,
    Delta,
    EndOfInput,
    EventTime,
    Never,
    Trigger,
    TriggerField,
)
from strandline.spec.values import Expression, Lateness, Name, refuse_at, written
from strandline.spec.window import CountWindow, Global, WindowField


class WindowedSpec(CommonSpec):
    """A pipeline of windows over any source.

    Attributes:
        window: the kind of windows: `{tumbling: 1h}`, `{sliding: 3h, every: 1h}`,
            `{session: 30m}`, `{cumulative: 1d, step: 1h}`, `{global: {}}` or `{count: 100}`.
        trigger: the trigger; by default windows fire at their end.
        evictor: the evictor, which removes records from a window when it fires.
        allowed_lateness: the time after its end during which a window accepts records and fires
            again.
        aggregates: the aggregates of each window: names with Spark SQL expressions.
        process: a user-defined Python function, `package.module:function`.
        returns: the columns of its result with their types.
        firings: whether all firings are published in addition to the last firing of each window.
    """

    window: WindowField
    trigger: TriggerField | None = None
    evictor: EvictorField | None = None
    allowed_lateness: Lateness = 0
    aggregates: dict[Name, Expression] = Field(default_factory=dict)
    process: ProcessField | None = None
    returns: dict[Name, ReturnedType] = Field(default_factory=dict)
    firings: bool = False

    @model_validator(mode="after")
    def _sessions_are_cleaned(self) -> WindowedSpec:
        longest_ms = MAX_WATERMARK - END_OF_INSTANTS_MS
        if self.window.merging and self.allowed_lateness > longest_ms:
            problem = (
                "too long for sessions: the time at which one is dropped would not fit 64 bits, "
                f"where Flink fails as soon as two merge; give at most {written(longest_ms)}"
            )
            refuse_at("allowed_lateness", written(self.allowed_lateness), problem)
        return self

    @model_validator(mode="after")
    def _trigger_and_evictor_suit_the_window(self) -> WindowedSpec:
        trigger, window = self.trigger, self.window
        if isinstance(window, CountWindow):
            for name, given in (("trigger", trigger), ("evictor", self.evictor)):
                if given is not None:
                    problem = "not for counting windows, which have one of their own; leave it out"
                    refuse_at(name, given.model_dump(), problem)
        if isinstance(trigger, Never | EndOfInput) and not isinstance(window, Global):
            problem = "for global windows alone; choose another, or write window: {global: {}}"
            refuse_at("trigger", trigger.model_dump(), problem)
        if isinstance(trigger, Delta) and window.merging:
            problem = "of a trigger that cannot merge sessions, as in Flink; choose another trigger"
            refuse_at("trigger.delta", trigger.delta, problem)
        return self

    @model_validator(mode="after")
    def _early_firings_are_kept(self) -> WindowedSpec:
        if self.fires_by.fires_early and not self.firings:
            problem = (
                "too little where windows fire before their end: the table `windows` keeps the "
                "last firing of each; write firings: true"
            )
            refuse_at("firings", self.firings, problem)
        return self

    @model_validator(mode="after")
    def _what_a_function_returns_is_said(self) -> WindowedSpec:
        if self.process is not None and not self.returns:
            problem = "without `returns`: name its columns with their types: returns: {n: bigint}"
            refuse_at("process", self.process.name, problem)
        if self.process is None and self.returns:
            problem = "without a function; give process: package.module:function, or remove it"
            refuse_at("returns", self.returns, problem)
        return self

    @property
    def contents(self) -> tuple[str, ...]:
        """The result columns of a window: the aggregates, and the columns of the function."""
        return (*self.aggregates, *self.returns)

    @property
    def hands_over_records(self) -> bool:
        """Whether a result needs the single records of each firing, and not only aggregates."""
        return self.process is not None

    @property
    def fires_by(self) -> Trigger:
        """The given trigger, or the default of this kind of windows."""
        if self.trigger is not None:
            return self.trigger
        if isinstance(self.window, CountWindow):
            count, every = self.window.count, self.window.every
            return Count(count=every or count, purging=every is None)
        return Never() if isinstance(self.window, Global) else EventTime()

    @property
    def evicts_by(self) -> Evictor | None:
        """The given evictor, or the evictor of sliding count windows; else None."""
        if isinstance(self.window, CountWindow) and self.window.every is not None:
            return CountEvictor(count=self.window.count)
        return self.evictor

    @property
    def lets_records_go(self) -> bool:
        """Whether the last firing of a window may lack records that the window accepted."""
        return self.fires_by.purging or self.evicts_by is not None or self.may_go_unfired

    @property
    def windows_count_all(self) -> bool:
        """Whether the column `records` of a published window counts all its accepted records."""
        return not self.lets_records_go

    @property
    def may_go_unfired(self) -> bool:
        """Whether a window may be dropped with records that no firing contained."""
        return not self.fires_by.fires_at_end

    @property
    def goes_by_order(self) -> bool:
        """Whether the firings of a window depend on the arrival order of its records."""
        evictor = self.evicts_by
        return self.may_go_unfired or (evictor is not None and evictor.goes_by_order)

    @property
    def fires_at_times(self) -> bool:
        """Whether a window fires also at times before its end."""
        return isinstance(self.fires_by, Continuous)

    @property
    def last_may_lack_records(self) -> bool:
        """Whether the last firing of a window may lack accepted records, also before its end."""
        return self.lets_records_go or self.fires_at_times

    @property
    def is_replayed(self) -> bool:
        """Whether windows are computed by the replay of single records, and not by aggregations.

        Under the default trigger single records are replayed only if a result needs the records of
        each firing; for sessions, also the records of chains in the table `firings`.
        """
        return self.last_may_lack_records or self.hands_over_records
