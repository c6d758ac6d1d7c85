"""A function of the user's own is called on Spark as the reference calls it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from answers import reference
from drawn import ROUNDS
from engine_under_test import Engine, each
from law_streams import drawn_stream
from pyspark.sql import functions as F

from strandline.model.lateness import MIN_WATERMARK
from strandline.spec import functions
from strandline.spec.evictor import TimeEvictor
from strandline.spec.process import Process
from strandline.spec.trigger import Continuous, Count

if TYPE_CHECKING:
    from strategies import Stream

    from strandline.engine.scope import Rebuild
    from strandline.reference.answer import Firing
    from strandline.spec.pipeline import PipelineSpec

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

SOURCE = """
def told(key, window, records, watermark):
    ids = records["id"].to_pylist()
    return [{"n": len(ids), "said": f"{key} {window.start} {window.end} {watermark} {ids}"}]
"""
PROCESS = {
    "process": Process(name="law_words:told", files={"law_words.py": SOURCE}),
    "returns": {"n": "bigint", "said": "string"},
}
WINDOWS: dict[str, dict[str, Any]] = {
    "tumbling": {"trigger": Continuous(continuous="3ms"), "evictor": TimeEvictor(time="9ms")},
    "session of own gaps": {"trigger": Count(count=2)},
    "session": {},
}
CHOSEN = len(WINDOWS) if ROUNDS > 1 else 1


def processed(window: str, number: int) -> Stream:
    """A stream whose windows call a function; its records in an order without a tie."""
    row = {"window": window, "lateness_ms": 400, "channels": None, "end_of_input": True}
    stream = drawn_stream(row | {"strategy": "bounded_out_of_orderness"}, number)
    source = stream.spec.source.model_copy(update={"sequence": "seq"})
    update = {**WINDOWS[window], **PROCESS, "source": source}
    ordered = [replace(record, sequence=n) for n, record in enumerate(stream.records)]
    return replace(stream, spec=stream.spec.model_copy(update=update), records=tuple(ordered))


def test_each_firing_and_each_window_has_what_the_function_returns_for_it(session):
    streams = [processed(window, number) for number, window in enumerate(WINDOWS)][:CHOSEN]

    def answered(stream: Stream) -> tuple[list[Any], list[Any]]:
        rebuild = Engine.on(session, stream).rebuild(tie_breaker=None)
        return told_by(rebuild, "firings"), told_by(rebuild, "windows")

    answers = each(streams, answered)
    for stream, (firings, windows) in answers:
        replay = stream.replay()
        every = [returned(stream.spec, firing) for firing in replay.firings]
        assert firings == sorted((row["n"], row["said"]) for row in every)
        last = {(f.key[0], f.window.start_ms, f.window.end_ms): f for f in replay.firings}
        shown = [last[r["key"], r["start"], r["end"]] for r in reference(stream).windows]
        assert windows == sorted((len(f.members), returned(stream.spec, f)["said"]) for f in shown)
    every_firing, every_window = (sum(len(told[n]) for _, told in answers) for n in (0, 1))
    assert every_firing > every_window > 1


def returned(spec: PipelineSpec, firing: Firing) -> dict[str, Any]:
    """The result of a pipeline's function for a firing of its replay, by column."""
    found = functions.result_of(
        functions.function_of(spec.process.files, spec.process.name),
        dict(zip(spec.source.key, firing.key, strict=True)),
        functions.times_of(firing.window.start_ms, firing.window.end_ms),
        pa.Table.from_pylist([dict(record.payload) for record in firing.members]),
        None if firing.watermark_ms == MIN_WATERMARK else firing.watermark_ms,
        spec.returns,
    )
    return {name: values[0].as_py() for name, values in found.items()}


def told_by(rebuild: Rebuild, part: str) -> list[Any]:
    if part == "firings":
        rows = rebuild.firings()
    else:
        rows = rebuild.windows().where((F.col("state") != "open") & (F.col("firings") > 0))
    return sorted((row["n"], row["said"]) for row in rows.toArrow().to_pylist())
