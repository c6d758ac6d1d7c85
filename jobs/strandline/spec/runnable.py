"""The features of pipeline files that the engine supports, and the refusal of others."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath

from strandline.errors import InputError
from strandline.spec.chained import ChainedSpec, ResultsSpec
from strandline.spec.evictor import kind_of
from strandline.spec.join import SIDES, IntervalJoinSpec, JoinSpec, WindowJoinSpec
from strandline.spec.joined import CogroupSpec, JoinedSpec
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.trigger import Continuous, Never
from strandline.spec.windowed import WindowedSpec

_INSTEAD = {
    "channels": "list the channels",
    "process": "write aggregates over the pairs, or a cogroup, whose function gets the records",
}
"""The way out for each key of `not_yet` that pipeline files can have."""
AnySpec = PipelineSpec | JoinSpec | ChainedSpec
"""The spec of any valid pipeline file."""
MOST_TIMES = 10_000
"""The largest number of timed firings of a window before its end: each is a row for each key."""


_LANDING = "landing"
"""The folder of a lake in which the guide puts landing tables."""


def runnable(spec: AnySpec, *, origin: str) -> PipelineSpec:
    """The spec as a runnable pipeline.

    Raises:
        InputError: the engine does not support it, or not yet.
    """
    if isinstance(spec, WindowedSpec) and _evicts_of_sessions_by_order(spec):
        raise InputError(
            f"{origin}: evictor",
            "on sessions only a time evictor has an answer: after a merge Flink keeps the records "
            "in the order of a hash table, so that which ones are the last is not determined",
            "evict by time, or choose other windows",
        )
    if isinstance(spec, WindowedSpec) and (times := times_of_a_window(spec)) > MOST_TIMES:
        raise InputError(
            f"{origin}: trigger.continuous",
            f"a window could fire {times:,} times before its end, more than {MOST_TIMES:,}",
            "give a longer interval",
        )
    if isinstance(spec, ResultsSpec) and (unordered := _why_unordered(spec)):
        why, way_out = unordered
        raise InputError(
            f"{origin}: source.pipeline",
            f"the content of these windows depends on the order of results, and {why}: Flink does "
            "not determine which of them comes first",
            way_out,
        )
    features = not_yet(spec)
    if features:
        listed = ", ".join(f"{path}: {what}" for path, what in features.items())
        raise InputError(
            f"{origin}: {next(iter(features))}",
            f"not yet run by the engine ({listed})",
            "; ".join(dict.fromkeys(_INSTEAD[path.rpartition(".")[2]] for path in features)),
        )
    if isinstance(spec, ChainedSpec):
        raise InputError(
            f"{origin}: source.pipeline",
            f"{spec.source.pipeline} is defined in a file of its own",
            "read both from one folder",
        )
    if isinstance(spec, IntervalJoinSpec | WindowJoinSpec):
        spec = _joined(spec, origin)
    _refuse_expectations_of_no_table(spec, origin)
    _refuse_folder_of_others(spec, origin)
    return spec


def _joined(spec: JoinSpec, origin: str) -> JoinedSpec | CogroupSpec:
    """A join as a runnable pipeline; an error if it has a feature that no pipeline supports."""
    for place, problem, way_out in _not_in_a_pipeline(spec):
        raise InputError(f"{origin}: {place}", problem, way_out)
    return JoinedSpec.of(spec) if isinstance(spec, IntervalJoinSpec) else CogroupSpec.of(spec)


def _refuse_expectations_of_no_table(spec: PipelineSpec, origin: str) -> None:
    """Refuse expectations of a table that the pipeline does not publish."""
    kept = spec.keeps | {"completeness"}
    for number, declared in enumerate(spec.quality.expectations):
        if declared.table not in kept:
            raise InputError(
                f"{origin}: quality.expectations.{number}.table",
                f"{declared.table} is not published by this pipeline",
                f"choose {spec.result} or completeness",
            )


def _refuse_folder_of_others(spec: PipelineSpec, origin: str) -> None:
    """Refuse the name of the folder with the landing tables."""
    tables = (normpath(table) for table in spec.landing_tables)
    folders = {table.partition("/")[0] for table in tables} | {_LANDING}
    if spec.pipeline.casefold() in {folder.casefold() for folder in folders}:
        raise InputError(
            f"{origin}: pipeline",
            f"{spec.pipeline!r} is also the folder of the lake that landing tables lie in",
            "give the pipeline another name, such as one after its results",
        )


def _why_unordered(spec: ResultsSpec) -> tuple[str, str] | None:
    """The reason why results in one window have no order, and the way out; None if they have one.

    Flink fires the results of one watermark advance in the order of their timers. Results of
    different keys, and of overlapping windows that fire early, have equal timers and so no order.
    A trigger `continuous` depends on the order only through the event time of a window's first
    result: of results with equal timers, it needs no order if their event times are equal, too.
    """
    upstream, keys = spec.upstream, set(spec.source.key.values())
    never = isinstance(spec.fires_by, Never) and spec.evicts_by is None
    by_order = spec.goes_by_order and not never
    missing = [name for name in upstream.source.key if name not in keys]
    early = upstream.fires_at_times and (by_order or spec.fires_at_times)
    if early and upstream.window.overlapping:
        why = f"overlapping windows of {upstream.pipeline} fire early at the same times"
        return why, "choose another trigger or evictor for one of the two pipelines"
    # other windows between may fire by the order of results: of different keys at once, too
    between = isinstance(upstream, ResultsSpec) and upstream.fires_by.fires_early
    at_once = early and upstream.window.merging
    if missing and (by_order or at_once or (between and spec.fires_at_times)):
        why = f"results of different {missing[0]} come at once"
        return why, f"put {missing[0]} into source.key, or choose another trigger or evictor"
    return None


def _not_in_a_pipeline(spec: JoinSpec) -> Iterator[tuple[str, str, str]]:
    """The unsupported features of a join: place, problem, way out."""
    starts = {}
    for name in SIDES:
        side = getattr(spec.sources, name)
        place = f"sources.{name}"
        if side.deduplicate is not None:
            yield f"{place}.deduplicate", "not yet possible in a join", "land each record once"
        if side.start is not None:
            starts[name] = side.start
    if len(set(starts.values())) > 1:
        problem = "another start than that of the left source: both run by one clock"
        yield "sources.right.start", problem, "give both the same start, or omit one of them"
    arrival_columns = {
        (side.arrival_date, side.arrival_time) for side in (spec.sources.left, spec.sources.right)
    }
    if spec.quarantine_days is not None and len(arrival_columns) > 1:
        problem = "the left rows have other columns for their arrival than the right ones"
        yield "quarantine_days", problem, "give them the same names, or omit quarantine_days"


def times_of_a_window(spec: WindowedSpec) -> int:
    """The number of timed firings of a window before its end; of a session with one record."""
    trigger = spec.fires_by
    if not isinstance(trigger, Continuous):
        return 0
    return spec.window.least_length_ms // trigger.continuous


def not_yet(spec: AnySpec) -> dict[str, str]:
    """The kinds that the reference has and the engine does not support yet, by YAML path."""
    found: dict[str, str] = {}
    if isinstance(spec, IntervalJoinSpec | WindowJoinSpec):
        found |= {f"sources.{name}.channels": what for name, what in _sides_not_yet(spec)}
    if isinstance(spec, WindowJoinSpec) and spec.join.window is not None and spec.process:
        found["process"] = "functions over the pairs of windows"
    if isinstance(spec, WindowedSpec) and _evicts_of_sessions_by_order(spec):
        found["evictor"] = str(kind_of(spec.evictor))
    return found


def _sides_not_yet(spec: JoinSpec) -> Iterator[tuple[str, str]]:
    """The sides with discovered channels whose order among the other side's is not exact."""
    sides = [(name, getattr(spec.sources, name)) for name in SIDES]
    per_record = any(side.watermark.emission_interval_ms is None for _, side in sides)
    for name, side in sides:
        if side.channels != "discovered":
            continue
        if side.watermark.combine == "splits":
            yield name, "discovered splits"
        elif (
            isinstance(spec, IntervalJoinSpec)
            and side.watermark.idleness_in_effect
            and side.sequence is not None
            and per_record
        ):
            yield name, "discovered channels with idleness beside a sequence of single records"


def _evicts_of_sessions_by_order(spec: WindowedSpec) -> bool:
    by_order = spec.evictor is not None and spec.evictor.goes_by_order
    return by_order and spec.window.merging
