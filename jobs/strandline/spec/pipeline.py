"""A pipeline: its YAML file as a frozen value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import model_validator

from strandline.spec.source import Source
from strandline.spec.trigger import EventTime
from strandline.spec.values import parse_duration, refuse_at
from strandline.spec.watermark import Watermark
from strandline.spec.windowed import WindowedSpec
from strandline.tables import FIRING_COLUMNS, WINDOW_COLUMNS, PublishedTable, tables_of


def channel_of(side: str, channel: str) -> str:
    """The name of a side's channel among the channels of both sides; unchanged for one source."""
    return f"{side}/{channel}" if side else channel


OWN_PREFIX = "_strandline_"
"""The prefix of the engine's own columns, compared without case."""
RESULT_COLUMNS = frozenset({*WINDOW_COLUMNS, *FIRING_COLUMNS, "supersedes_windows"})
"""The columns of every result, in lower case."""


BEHIND_THE_WATERMARK = (
    "allowed_lateness",
    "trigger",
    "evictor",
    "aggregates",
    "process",
    "returns",
)
"""The keys of the file that decide the results, and not when the watermark reaches a window."""


class PipelineSpec(WindowedSpec):
    """A pipeline of a YAML file; all times are whole milliseconds."""

    result: ClassVar[str] = "windows"
    """The name of the table with its results: `windows` or `pairs`."""
    has_pairs_of_windows: ClassVar[bool] = False
    """Whether it publishes pairs of records in addition to its windows."""

    source: Source
    watermark: Watermark

    @model_validator(mode="after")
    def _result_columns_are_distinct(self) -> PipelineSpec:
        refuse_names_in_use(self.source.key, self.aggregates, self.returns)
        return self

    @model_validator(mode="after")
    def _retired_channels_would_hold_back(self) -> PipelineSpec:
        if self.source.retired and self.watermark.idleness_in_effect:
            problem = (
                "of no use with watermark.idleness: a channel that is silent is left out anyway; "
                "remove one of them"
            )
            refuse_at("source.retired", list(self.source.retired), problem)
        if self.source.retired and self.watermark.goes_by_the_clock:
            problem = (
                "of no use where the watermark follows the clock: a silent channel does not "
                "hold windows back; remove it"
            )
            refuse_at("source.retired", list(self.source.retired), problem)
        return self

    @property
    def without_where(self) -> PipelineSpec:
        """The pipeline without its condition `where`."""
        source = self.source.model_copy(update={"where": None})
        return self.model_copy(update={"source": source})

    @property
    def without_bound(self) -> PipelineSpec:
        """The pipeline with a bound of zero, which has the same loss curve."""
        return self.model_copy(update={"watermark": self.watermark.without_bound})

    def under(self, overrides: Mapping[str, str]) -> PipelineSpec:
        """The pipeline with overridden rules, such as `{"allowed_lateness": "6h"}`.

        A bound is ignored if its watermark strategy has none.
        """
        lengths_ms = {name: parse_duration(text) for name, text in overrides.items()}
        changed: dict[str, Any] = {n: ms for n, ms in lengths_ms.items() if n == "allowed_lateness"}
        field = self.watermark.bound_field
        if "bound" in lengths_ms and field is not None:
            changed["watermark"] = self.watermark.model_copy(update={field: lengths_ms["bound"]})
        return self.model_copy(update=changed)

    @property
    def total_lateness_ms(self) -> int:
        """Bound plus allowed lateness, in ms: the sum decides which records are late."""
        return (self.watermark.bound_ms or 0) + self.allowed_lateness

    @property
    def arrival_is_event_time(self) -> bool:
        """Whether ingestion replaces every event time by the arrival."""
        return self.watermark.arrival_is_event_time

    @property
    def sides(self) -> Mapping[str, PipelineSpec]:
        """The pipelines of the sources by side; the side of a single source is the empty text.

        Example:
            `{"": spec}`, or `{"left": left, "right": right}`.
        """
        return {"": self}

    @property
    def has_two_sources(self) -> bool:
        """Whether it reads two sources."""
        return len(self.sides) > 1

    @property
    def waits_for_all(self) -> bool:
        """Whether each side's watermark waits for the first record of each of its channels."""
        rules = [side.watermark for side in self.sides.values()]
        return not any(one.idleness_in_effect or one.goes_by_the_clock for one in rules)

    @property
    def why_overridden_is_redone(self) -> str | None:
        """Why scheduled runs recompute windows published with overridden rules; None: they stay."""
        if self.overridden == "redo":
            return "overridden: redo"
        if self.window.all_time:
            return "windows of all time are never final"
        return None

    @property
    def reads_results_of(self) -> str | None:
        """The name of the pipeline whose results are its records, and whose watermark it has.

        None if its records are rows of landing tables.
        """
        return None

    @property
    def input_in_words(self) -> str:
        """Its input as a sentence names it: `the landing table`, or `the results of gauge`."""
        upstream = self.reads_results_of
        return "the landing table" if upstream is None else f"the results of {upstream}"

    @property
    def landing_tables(self) -> list[str]:
        """The names of the landing tables that it reads; none if it reads results."""
        return [side.source.table for side in self.sides.values()]

    @property
    def has_channels(self) -> bool:
        """Whether a source has a channel column."""
        return any(side.source.channel is not None for side in self.sides.values())

    def waited_for(self, at_ms: int) -> list[str]:
        """The declared channels that are not retired at an instant, in their order."""
        retired = self.retired_by(at_ms)
        declared = (
            channel_of(name, channel)
            for name, side in self.sides.items()
            for channel in side.source.declared_channels or ()
        )
        return [channel for channel in declared if channel not in retired]

    def retired_by(self, at_ms: int) -> set[str]:
        """The channels that are retired at an instant."""
        return {
            channel_of(name, channel)
            for name, side in self.sides.items()
            for channel, retired_ms in side.source.retired.items()
            if retired_ms <= at_ms
        }

    @property
    def ids_of_sides(self) -> dict[str, tuple[str, ...]]:
        """The columns that identify the records of each of two sources, if they are declared."""
        return {}

    @property
    def tables(self) -> dict[str, PublishedTable]:
        """The tables for its key by name, in the order of publishing."""
        return tables_of(self.source.key, pairs_of_windows=self.has_pairs_of_windows)

    @property
    def keeps(self) -> set[str]:
        """The tables of results that it publishes."""
        beside = {"firings": self.firings, "pairs": self.has_pairs_of_windows}
        return {self.result, *(name for name, is_kept in beside.items() if is_kept)}

    @property
    def days_follow_each_other(self) -> bool:
        """Whether the observation of an arrival day depends on the days before it.

        Examples: a channel may have become idle the day before; a record may be out of order with,
        or a duplicate of, a record of the day before.
        """
        counts_order = self.watermark.violation_handler is not None
        repeats = self.source.deduplicate is not None
        return self.watermark.idleness_in_effect or counts_order or repeats

    @property
    def spec_fingerprint(self) -> str:
        """A hash of all rules that decide the results; not of quality, schedule or settings."""
        parts = {"source", "watermark", "window", "allowed_lateness", "aggregates"}
        # a pipeline without them has the fingerprint that it had before there were any
        usual: tuple[Any, ...] = (None, EventTime(), {})
        may_be_given = ("trigger", "evictor", "process", "returns")
        given = {name for name in may_be_given if getattr(self, name) not in usual}
        return _fingerprint(self, parts | given)

    @property
    def rules(self) -> dict[str, str]:
        """A hash of each rule of `spec_fingerprint` by its key in the file, to name edited ones."""
        return self.hashes("source", "watermark", "window", *BEHIND_THE_WATERMARK)

    @property
    def behind_the_watermark(self) -> frozenset[str]:
        """The keys of `rules` that do not decide when the watermark reaches a window."""
        return frozenset(BEHIND_THE_WATERMARK)

    def hashes(self, *keys: str) -> dict[str, str]:
        """A hash of each of some keys of the file."""
        return {key: _fingerprint(self, {key}) for key in keys}

    @property
    def layout(self) -> dict[str, Any]:
        """The layout of its published rows: `window`, `key` and, for sessions, `slot`.

        Rows of different layouts cannot be in one table.
        """
        slot = {"slot": self.quality.session_slot} if self.window.merging else {}
        # what a window says by default is not kept: there may be more of it in later versions
        window = self.window.model_dump(mode="json", exclude_defaults=True)
        return {"window": window, "key": self.source.key, **slot}

    @property
    def timeline_fingerprint(self) -> str:
        """A hash of all that decides the timeline: source, watermark and grid of thresholds."""
        more = {}
        if self.window.merging:
            more["slot"] = self.quality.session_slot
        return _fingerprint(self, {"source", "watermark", "window", "allowed_lateness"}, **more)


def refuse_names_in_use(
    key: Iterable[str], aggregates: Iterable[str], returns: Iterable[str]
) -> None:
    """Refuse names that would occur twice among the columns of a result."""
    in_use = {*RESULT_COLUMNS}
    for place, names in (("source.key", key), ("aggregates", aggregates), ("returns", returns)):
        for name in names:
            if name.lower().startswith(OWN_PREFIX):
                problem = f"reserved, as all names that begin with {OWN_PREFIX}; choose another"
                refuse_at(f"{place}.{name}", name, problem)
            if name.lower() in in_use:
                problem = "a result column that exists already; choose another name"
                refuse_at(f"{place}.{name}", name, problem)
            in_use.add(name.lower())


def _fingerprint(spec: PipelineSpec, parts: set[str], **more: int) -> str:
    rules = spec.model_dump(mode="json", include=parts) | more
    if source := rules.get("source"):
        # when a day is over for a run decides no number; and of older versions nothing changes
        source.pop("ready_after")
        if not source["retired"]:
            source.pop("retired")
    return digest(json.dumps(rules, sort_keys=True))


def digest(*parts: object) -> str:
    """A hash of some parts, of 16 characters."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]
