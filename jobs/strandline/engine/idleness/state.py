"""The state of a source between two ticks: all that later days need of earlier ones."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from strandline.engine.position.axis import Axis
from strandline.model.lateness import MIN_WATERMARK
from strandline.spec.pipeline import PipelineSpec

_STORED_AS = {"last_shown_ms": "heard_ms", "says_idle": "quiet"}
"""Older names of fields, as they are stored in the timeline."""
_READ_AS = {stored: name for name, stored in _STORED_AS.items()}


@dataclass(frozen=True)
class Channel:
    """The state of a channel between two ticks.

    Attributes:
        name: its name.
        joined: the instant of its first record; None: it is declared, and has joined from the
            beginning.
        watermark_ms: the highest watermark that it has emitted.
        active: whether it has joined and is not idle.
        been_idle: whether it has ever been idle.
        last_shown_ms: the tick of its last visible record, the clock's start at first; None: there
            is none.
        pending_ms: the future tick at which a record becomes visible; None: there is none.
        pending_candidate_ms: the candidate that it will offer then.
        raised_ms: when it last raised its watermark; None: not yet.
    """

    name: str
    joined: int | None = None
    watermark_ms: int = MIN_WATERMARK
    active: bool = True
    been_idle: bool = False
    last_shown_ms: int | None = None
    pending_ms: int | None = None
    pending_candidate_ms: int | None = None
    raised_ms: int | None = None

    @property
    def joined_at(self) -> int:
        """The instant of its first record; 0 if it is declared."""
        return self.joined or 0


@dataclass(frozen=True)
class StatusChange:
    """A change of a source as a whole to idle or active.

    Attributes:
        seen_from: the first instant after the change.
        rank: the order at one instant, as for steps.
        idle: whether it goes idle.
    """

    seen_from: int
    rank: int
    idle: bool


@dataclass(frozen=True)
class SourceState:
    """The state of a source at an instant.

    Attributes:
        until_ms: ticks before it have run; None: none has.
        channels: its channels, in probe order.
        combined_ms: the combined watermark.
        says_idle: whether a source of splits has emitted the status idle.
        splits_idle: whether all its splits have been idle since its watermark last advanced.
        changes: when the source as a whole went idle or active since the previous state; needed,
            and stored in the timeline, only if there is a second input.
    """

    until_ms: int | None = None
    channels: tuple[Channel, ...] = ()
    combined_ms: int = MIN_WATERMARK
    says_idle: bool = False
    splits_idle: bool = True
    changes: tuple[StatusChange, ...] = ()

    @classmethod
    def at_the_start(cls, spec: PipelineSpec, axis: Axis) -> SourceState:
        """The state before any tick, with the declared channels."""
        declared = spec.source.declared_channels or ()
        return cls(channels=tuple(Channel(name, last_shown_ms=axis.start_ms) for name in declared))

    def to_json(self, *, beside_another: bool = False) -> str:
        """The state as a text for the timeline; `beside_another`: with the changes."""
        kept = self if beside_another else self.without_changes
        return json.dumps(asdict(kept, dict_factory=_stored))

    @property
    def without_changes(self) -> SourceState:
        """The same state without changes, as of a single input."""
        return replace(self, changes=())

    @classmethod
    def from_json(cls, text: str) -> SourceState:
        """The state from the text of `to_json`."""
        return _state(json.loads(text))


@dataclass(frozen=True)
class UnionState(SourceState):
    """The state of two inputs that one valve combines; their channels are in `sources`.

    Attributes:
        sources: the state of each source.
        splits: for each source, the one channel of the valve that a source of splits is; None: the
            source's channels are channels of the valve.
    """

    sources: tuple[SourceState, ...] = ()
    splits: tuple[Channel | None, ...] = ()

    @property
    def without_changes(self) -> UnionState:
        """See `SourceState`."""
        sources = tuple(source.without_changes for source in self.sources)
        return replace(self, changes=(), sources=sources)


def _state(stored: dict[str, Any]) -> SourceState:
    state = _read(stored)
    state["channels"] = tuple(Channel(**_read(channel)) for channel in state["channels"])
    state["changes"] = tuple(StatusChange(**change) for change in state.get("changes", ()))
    if "sources" not in state:
        return SourceState(**state)
    state["sources"] = tuple(map(_state, state["sources"]))
    state["splits"] = tuple(one and Channel(**_read(one)) for one in state["splits"])
    return UnionState(**state)


def _stored(items: list[tuple[str, object]]) -> dict[str, object]:
    kept = (item for item in items if item != ("changes", ()))
    return {_STORED_AS.get(name, name): value for name, value in kept}


def _read(stored: dict[str, Any]) -> dict[str, Any]:
    return {_READ_AS.get(name, name): value for name, value in stored.items()}
