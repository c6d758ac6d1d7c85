"""Laws of parts of the engine's answer: what is counted, put together, rebuilt day by day."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from answers import late_in, reference, starting_in
from cells import counted
from drawn import drawn
from duplicate_streams import RULES, deduplicated
from engine_under_test import Engine, each, late_of, windows_of
from hard_streams import malformed
from law_streams import OVER_MIDNIGHT, drawn_streams, rows
from pyspark.sql import functions as F
from spec_strategies import CHANNELS_GIVEN, STRATEGIES

from strandline.engine import columns as c
from strandline.engine.records.days import in_days
from strandline.engine.scope import Rebuild, Scope
from strandline.engine.sessions.reach import first_not_final
from strandline.engine.timeline import CELL_COLUMNS
from strandline.model.intervals import EVERYTHING, TimeRange, day_of, midnight_of
from strandline.model.lateness import MIN_WATERMARK
from strandline.reference.tables import Tables
from strandline.spec.window import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from strategies import Stream

    from strandline.engine.history.history import History

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

BY_RECORDS_OF_ANY_CANDIDATE_OR_CLOCK = ("bounded_out_of_orderness", "expression", "ingestion")
IN_TWO_STEPS = {
    "count": "count(*)",
    "total": "sum(value)",
    "least": "min(value)",
    "mean": "avg(value)",
}


def contents(windows: DataFrame) -> list[tuple]:
    """What the emitted windows hold."""
    emitted = windows.where("state != 'open' AND records > 0").select(
        F.unix_millis("window_start"),
        F.unix_millis("window_end"),
        *("k", "records", "late_accepted", *IN_TWO_STEPS),
    )
    return sorted(tuple(row.values()) for row in emitted.toArrow().to_pylist())


def contents_by_the_reference(stream: Stream) -> list[tuple]:
    found = []
    for row in Tables(stream.spec, stream.replay()).windows():
        values = [record.payload["value"] for record in row.members]
        counts = (len(values), row.late_accepted, len(values))
        mean = pytest.approx(sum(values) / len(values))
        window = (row.window.start_ms, row.window.end_ms, row.key[0])
        found.append((*window, *counts, sum(values), min(values), mean))
    return sorted(found, key=lambda row: row[:3])


def with_aggregates(engine: Engine, aggregates: dict[str, str]) -> Engine:
    spec = engine.stream.spec.model_copy(update={"aggregates": aggregates})
    return replace(engine, stream=replace(engine.stream, spec=spec))


PANES = rows(
    "combine",
    "end_of_input",
    window=("sliding", "cumulative"),
    strategy=BY_RECORDS_OF_ANY_CANDIDATE_OR_CLOCK,
    emit=("per_record", "7ms"),
    lateness_ms=(0, 25, 400),
    idleness=(None, "10ms"),
)


def test_panes_put_together_give_what_single_records_give_and_the_reference(session):
    """In every column, and in what the books see; of everything, and of a range."""

    def answer(stream: Stream) -> tuple[list[tuple], list[list[list[str]]]]:
        start_ms = stream.start_ms + 20
        scopes = [Scope(EVERYTHING), Scope(TimeRange(start_ms, start_ms + 60))]
        ids = {"ids": "array_sort(collect_list(id))"}  # whose parts nobody puts together
        landing = Engine.on(session, stream, partitions=2)
        found, engines = (
            [],
            [with_aggregates(landing, a) for a in (IN_TWO_STEPS, IN_TWO_STEPS | ids)],
        )
        for engine in engines:
            history = engine.history()
            rebuilt = [engine.rebuild(scope, history=history) for scope in scopes]
            for one in rebuilt:
                windows = one.windows().drop("ids", "spec_fingerprint")
                compared = [
                    rows.toArrow().to_pylist() for rows in (windows, one.accepted_by_slot())
                ]
                found.append([sorted(map(str, rows)) for rows in compared])
            if engine is engines[0]:
                emitted = contents(rebuilt[0].windows())
        return emitted, found

    for stream, (emitted, found) in each(drawn_streams(PANES), answer):
        whole, part, whole_by_record, part_by_record = found
        assert emitted == contents_by_the_reference(stream), stream
        assert whole == whole_by_record, stream
        assert part == part_by_record, stream


SESSIONS = rows(
    "end_of_input",
    window=("session", "session of own gaps"),
    strategy=BY_RECORDS_OF_ANY_CANDIDATE_OR_CLOCK,
    emit=("per_record", "7ms"),
    lateness_ms=(5, 400),
)


def test_rows_of_sessions_put_together_give_what_the_records_give(session):
    def answer(stream: Stream) -> tuple[list[tuple], list[tuple]]:
        rebuild = with_aggregates(Engine.on(session, stream), IN_TWO_STEPS).rebuild()
        accepted = rebuild.accepted_by_slot().select(c.SLOT, "records", "late_accepted")
        by_slot = sorted(tuple(row.values()) for row in accepted.toArrow().to_pylist())
        return contents(rebuild.windows()), by_slot

    for stream, (windows, accepted) in each(drawn_streams(SESSIONS), answer):
        assert windows == contents_by_the_reference(stream), stream
        slots = [
            (row.window.start_ms, row.on_time + row.late_accepted, row.late_accepted)
            for row in Tables(stream.spec, stream.replay()).completeness()
        ]
        assert accepted == [slot for slot in slots if slot[1]], stream


VIOLATIONS = rows(
    "combine",
    "channels",
    "sequence",
    strategy=("legacy_ascending",),
    emit=("per_record", "7ms", "0ms"),
    base_ms=(OVER_MIDNIGHT,),
)


def test_what_breaks_an_ascending_order_is_counted_in_one_go_and_day_by_day(session):
    def answer(stream: Stream) -> tuple[int, int]:
        engine = Engine.on(session, stream)
        history = engine.history()
        days = history.days.every
        return engine.violations(history), sum(engine.violations(history, day) for day in days)

    for stream, counts in each(drawn_streams(VIOLATIONS), answer):
        assert counts == (stream.replay().violations,) * 2, stream


CELLS = rows(
    *("emit", "channels", "sequence", "lateness_ms", "base_ms"),
    window=("tumbling",),
    strategy=STRATEGIES[:4],
)


def test_a_cell_counts_the_records_that_are_alike(session):
    def observed(stream: Stream) -> list[tuple]:
        # a slot's parts count apart where no threshold tells them apart, too
        cell, most = CELL_COLUMNS[:7], ("largest_ts_ms", "largest_end_ms", "largest_candidate_ms")
        alike = Engine.on(session, stream).observed().groupBy(*cell)
        cells = alike.agg(
            F.sum("records").alias("records"),
            F.min("least_ts_ms").alias("least_ts_ms"),
            *(F.max(name).alias(name) for name in (*most, "last_arrival_ms")),
            F.min(F.struct("first_arrival_ms", "first_sequence")).alias("first"),
            F.bit_or("arrival_hours").alias("arrival_hours"),
        ).select(
            *cell,
            "records",
            "least_ts_ms",
            *most,
            "first.first_arrival_ms",
            "first.first_sequence",
            *CELL_COLUMNS[-2:],
        )
        return [tuple(row.values()) for row in cells.toArrow().to_pylist()]

    for stream, cells in each(drawn_streams(CELLS), observed):
        known = [r for r in stream.records if r.arrival_ms < stream.horizon_ms]
        assert sorted(cells, key=repr) == sorted(counted(stream, known), key=repr), stream


def test_rows_of_tens_of_thousands_of_days_are_found(session):
    """Sail's server ended at a list of some 20,000 days; Spark's parser had no end of ranges."""
    rows = session.range(50_000).select(F.expr("date_add(DATE'1850-01-01', int(id))").alias("day"))
    first = date(1850, 1, 1)
    others = [first + timedelta(number) for number in range(1, 50_000, 2)]
    assert rows.where(in_days("day", [None, *others])).count() == 25_000


LATE = rows(
    "sequence",
    window=("tumbling", "sliding", "session"),
    channels=CHANNELS_GIVEN[1:3],
    strategy=("ascending",),
    emit=("per_record",),
    lateness_ms=(0,),
)


def test_the_ids_of_late_records_are_their_own_in_whatever_order_the_rows_lie(session):
    def ids(stream: Stream) -> tuple[list[str], list[str]]:
        shuffled = {
            "arranged": lambda landed: random.Random(1).sample(landed, len(landed)),
            "partitions": 3,
        }
        engines = Engine.on(session, stream), Engine.on(session, stream, **shuffled)
        rows = (engine.rebuild().late().select("id", "record_id") for engine in engines)
        one, other = (sorted(map(str, row.toArrow().to_pylist())) for row in rows)
        return one, other

    found = each(drawn_streams(LATE), ids)
    assert any(one for _, (one, _) in found)
    for stream, (one, other) in found:
        assert one == other, stream
        assert len({row.split("record_id")[1] for row in one}) == len(one), stream


REPEATED = rows(
    base_ms=(OVER_MIDNIGHT,),
    channels=CHANNELS_GIVEN[1:],
    sequence=(None, "seq"),
)


def test_duplicates_of_a_day_alone_are_those_of_the_model(session):
    def repeated(case: tuple[Stream, dict[str, Any]]) -> dict[int, Any]:
        stream, rule = case
        counting, _ = deduplicated(stream, rule)
        landed = replace(stream, spec=counting.spec)
        beside = list(malformed(stream).values())
        engine = Engine.on(session, landed, beside=beside, partitions=2)
        days = sorted({day_of(record.arrival_ms) for record in stream.records})
        duplicates = [
            engine.marked(day).where(f"{c.REASON} = 'duplicate'").select("id", c.ARRIVAL_DAY)
            for day in days
        ]
        return {row[0]: row[1] for frame in duplicates for row in frame.collect()}

    cases = [
        (stream, drawn(RULES, f"rule {number}"))
        for number, stream in enumerate(drawn_streams(REPEATED))
    ]
    for (stream, rule), alone in each(cases, repeated):
        _, records = deduplicated(stream, rule)
        assert alone == {r.payload["id"]: day_of(r.arrival_ms) for r in records}, stream


DAYS = rows(
    "window",
    "combine",
    strategy=BY_RECORDS_OF_ANY_CANDIDATE_OR_CLOCK,
    emit=("per_record", "7ms"),
    idleness=(None, "10ms"),
    channels=CHANNELS_GIVEN[1:4:2],
    lateness_ms=(0, 25),
    base_ms=(OVER_MIDNIGHT,),
    end_of_input=(False,),
    after_last_ms=(2,),
)


def test_one_more_day_on_what_was_final_gives_what_one_go_gives(session):
    """algorithm.md, section 8: what is final at P stays, the rest is rebuilt as of M."""

    def first_open(engine: Engine, history: History, before: History, midnight_ms: int) -> int:
        watermark_ms = before.crossings.watermark_reached(midnight_ms)
        if not isinstance(engine.stream.spec.window, Session):
            return before.grid.first_not_final(watermark_ms)
        return first_not_final(
            engine.observed_records(history),
            history,
            until_ms=engine.stream.horizon_ms,
            watermark_ms=watermark_ms,
        )

    def day_of_work(stream: Stream) -> tuple[int, Any, Any]:
        midnight_ms = last_midnight(stream)
        before = Engine.on(session, replace(stream, horizon_ms=midnight_ms)).history()
        engine = Engine.on(session, stream)
        history = engine.history()
        first_ms = first_open(engine, history, before, midnight_ms)
        scope = Scope(TimeRange(first_ms, EVERYTHING.end_ms), older_since_ms=midnight_ms)
        rebuild: Rebuild = engine.rebuild(scope, history=history)
        emitted, _ = windows_of(rebuild)
        return first_ms, emitted, late_of(rebuild)

    for stream, (first_ms, emitted, late) in each(drawn_streams(DAYS), day_of_work):
        before = reference(replace(stream, horizon_ms=last_midnight(stream)))
        after, final = reference(stream), TimeRange(MIN_WATERMARK, first_ms)
        assert starting_in(before.windows, final) + emitted == after.windows, stream
        both = late_in(stream, before.late, final) + late
        assert sorted(both, key=lambda row: row["id"]) == after.late, stream


def last_midnight(stream: Stream) -> int:
    return midnight_of(day_of(stream.horizon_ms - 1))
