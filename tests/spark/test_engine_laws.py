"""The set-based engine tells of every stream what the record-by-record reference tells."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from cells import counted
from engine_under_test import (
    LANDING,
    Engine,
    Told,
    each,
    firings_of,
    late_of,
    law,
    reference,
    windows_of,
)
from hard_streams import hard_streams
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F
from strategies import Stream, any_watermarks, cumulative_windows, sliding_windows, windows

from strandline.engine import columns as c
from strandline.engine.history import Clock, Closure
from strandline.engine.identity import SourceColumns, identity
from strandline.engine.observe import CELL
from strandline.engine.rebuild import Scope
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange, day_of, midnight_of
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.reference import Record, Tables
from strandline.reference.duplicates import without_duplicates
from strandline.spec import parse_spec
from strandline.spec.source import Deduplicate

pytestmark = pytest.mark.spark

PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture(scope="module")
def session(spark):
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, "1")
    yield spark
    spark.conf.set(PARTITIONS, before)


def batches(**given: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Stream]]:
    """Streams by the four: they run side by side."""
    return st.lists(hard_streams(**given), min_size=4, max_size=4)


def same(stream: Stream, told: Told, expected: Told) -> None:
    for part in Told.__dataclass_fields__:
        assert getattr(told, part) == getattr(expected, part), f"{part} of {stream}"


def only(rows: list[dict[str, Any]], within: TimeRange) -> list[dict[str, Any]]:
    return [row for row in rows if row["start"] in within]


# --------------------------------------------------------------------------------------------- laws


@law(10)
@given(batches())
def test_the_engine_tells_what_the_reference_tells(session, streams):
    for stream, told in each(streams, lambda s: Engine.on(session, s).told()):
        same(stream, told, reference(stream))


EVERY_STRATEGY = any_watermarks(idleness=False)
ON_A_GRID = windows() | sliding_windows() | cumulative_windows()


@law(8)
@given(batches(watermark=EVERY_STRATEGY, window=sliding_windows() | cumulative_windows()))
def test_records_with_several_windows_are_the_references(session, streams):
    for stream, told in each(streams, lambda s: Engine.on(session, s).told()):
        same(stream, told, reference(stream))


IN_TWO_STEPS = {
    "count": "count(*)",
    "total": "sum(value)",
    "least": "min(value)",
    "mean": "avg(value)",
}


@law(4)
@given(batches(window=sliding_windows() | cumulative_windows()))
def test_aggregates_of_panes_put_together_are_those_of_the_records(session, streams):
    def told(stream: Stream) -> list[tuple]:
        engine = Engine.on(session, stream)
        spec = stream.spec.model_copy(update={"aggregates": IN_TWO_STEPS})
        rows = replace(engine, stream=replace(stream, spec=spec)).rebuild().windows()
        emitted = rows.where("state != 'open' AND records > 0").select(
            F.unix_millis("window_start"),
            F.unix_millis("window_end"),
            *("k", "records", "late_accepted", *IN_TWO_STEPS),
        )
        return sorted(tuple(row.values()) for row in emitted.toArrow().to_pylist())

    for stream, rows in each(streams, told):
        expected = []
        for row in Tables(stream.spec, stream.replay()).windows():
            values = [record.payload["value"] for record in row.members]
            counts = (len(values), row.late_accepted, len(values))
            mean = pytest.approx(sum(values) / len(values))
            window = (row.window.start_ms, row.window.end_ms, row.key[0])
            expected.append((*window, *counts, sum(values), min(values), mean))
        assert rows == sorted(expected, key=lambda row: row[:3]), stream


@law(4)
@given(
    batches(watermark=EVERY_STRATEGY, window=sliding_windows() | cumulative_windows()),
    st.integers(-20, 60),
    st.integers(1, 80),
)
def test_panes_and_single_records_give_the_same_rows(session, streams, ahead_ms, width_ms):
    """In every column, those that only the books see too; of everything, and of a range."""

    def told(stream: Stream) -> list[list[str]]:
        start_ms = stream.start_ms + ahead_ms
        scopes = [Scope(EVERYTHING), Scope(TimeRange(start_ms, start_ms + width_ms))]
        ids = {"ids": "array_sort(collect_list(id))"}  # whose parts nobody puts together
        found = []
        for aggregates in (IN_TWO_STEPS, IN_TWO_STEPS | ids):
            spec = stream.spec.model_copy(update={"aggregates": aggregates})
            engine = Engine.on(session, replace(stream, spec=spec), partitions=2)
            for scope in scopes:
                rows = engine.rebuild(scope).windows().drop("ids", "spec_fingerprint")
                found.append(sorted(map(str, rows.toArrow().to_pylist())))
        return found

    for stream, (whole, part, whole_by_record, part_by_record) in each(streams, told):
        assert whole == whole_by_record, stream
        assert part == part_by_record, stream


@law(8)
@given(batches(watermark=EVERY_STRATEGY))
def test_every_strategy_is_the_references_with_a_valve_and_with_splits(session, streams):
    for stream, told in each(streams, lambda s: Engine.on(session, s).told()):
        same(stream, told, reference(stream))


LEGACY_ASCENDING = any_watermarks(idleness=False).map(
    lambda watermark: {
        "strategy": "legacy_ascending",
        **{name: watermark[name] for name in ("emit", "combine")},
    }
)


@law(4)
@given(st.lists(hard_streams(watermark=LEGACY_ASCENDING), min_size=8, max_size=8))
def test_what_breaks_an_ascending_order_is_counted_in_one_go_and_day_by_day(session, streams):
    def told(stream: Stream) -> tuple[int, int]:
        engine = Engine.on(session, stream)
        history = engine.history()
        by_day = [
            engine.violations(history, day) for day in history.well_formed["arrival_date"].unique()
        ]
        return engine.violations(history), sum(by_day)

    for stream, counts in each([over_midnight(s) for s in streams], told):
        assert counts == (stream.replay().violations,) * 2, stream


IDLE = any_watermarks(idleness=True).filter(
    lambda watermark: (
        watermark["idleness"] is not None
        and watermark["emit"] not in ("per_record", {"every": "0ms"})
    )
)


@law(6)
@given(batches(watermark=IDLE))
def test_channels_that_go_idle_count_as_they_do_in_the_reference(session, streams):
    for stream, told in each(streams, lambda s: Engine.on(session, s).told()):
        same(stream, told, reference(stream))


@law(4)
@given(st.lists(hard_streams(), min_size=8, max_size=8))
def test_a_cell_counts_the_records_that_are_alike(session, streams):
    def observed(stream: Stream) -> list[tuple]:
        # a slot's parts count apart where no threshold tells them apart, too
        alike = Engine.on(session, stream).observed().groupBy(*CELL)
        rows = alike.agg(
            F.sum(c.RECORDS),
            F.min(c.LEAST_TS),
            *(F.max(name) for name in (c.LARGEST_TS, c.LARGEST_END, c.LARGEST_CANDIDATE)),
            F.min(c.FIRST_INSTANT),
        )
        return [tuple(row.values()) for row in rows.toArrow().to_pylist()]

    for stream, cells in each(streams, observed):
        known = [r for r in stream.records if r.arrival_ms < stream.horizon_ms]
        assert sorted(cells, key=repr) == sorted(counted(stream, known), key=repr), stream


@law(3)
@given(batches(window=ON_A_GRID), st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_their_partitions_matter(session, streams, random):
    shuffled = {id(s): random.sample(range(len(s.records)), len(s.records)) for s in streams}

    def told(stream: Stream) -> tuple[Told, set[str]]:
        order = shuffled[id(stream)]
        arranged = Engine.on(
            session, stream, arranged=lambda rows: [rows[i] for i in order], partitions=3
        )
        return arranged.told(), record_ids(arranged)

    for stream, (arranged, ids) in each(streams, told):
        same(stream, arranged, reference(stream))
        assert ids == record_ids(Engine.on(session, stream))


def record_ids(engine: Engine) -> set[str]:
    rows = engine.rebuild().late().select("record_id").toArrow().to_pylist()
    assert len({row["record_id"] for row in rows}) == len(rows)
    return {row["record_id"] for row in rows}


@law(3)
@given(batches(window=ON_A_GRID))
def test_every_record_is_in_exactly_one_of_windows_late_and_malformed(session, streams):
    def told(stream: Stream) -> tuple[Told, dict[int, str]]:
        engine = Engine.on(session, stream, beside=list(malformed(stream).values()))
        return engine.told(), engine.malformed()

    for stream, (answer, reasons) in each(streams, told):
        # malformed rows are no activity: they move nothing
        same(stream, answer, reference(stream))
        assert reasons == {row["id"]: reason for reason, row in malformed(stream).items()}
        placed = [*{i for row in (*answer.windows, *answer.open) for i in row["ids"]}]
        placed += [row["id"] for row in answer.late]
        known = [r.payload["id"] for r in stream.records if r.arrival_ms < stream.horizon_ms]
        assert sorted(placed) == sorted(known)


def malformed(stream: Stream) -> dict[str, dict[str, Any]]:
    """A row for each reason that a stream's own pipeline can have, far ahead in event time."""
    sound = {
        **{"arrival_ms": stream.start_ms, "seq": 1, "ts_ms": stream.start_ms + DAY_MS},
        **{"channel": "a", "k": "x", "value": 100},
    }
    wrong: dict[str, dict[str, Any]] = {
        "null_event_time": {"ts_ms": None},
        "null_arrival": {"arrival_ms": None},
        "null_key": {"k": None},
        "event_time_out_of_range": {"ts_ms": 10**15},
    }
    if stream.spec.arrival_is_event_time:  # nobody looks at the event time that has landed
        del wrong["null_event_time"], wrong["event_time_out_of_range"]
    if stream.spec.source.channel is not None:
        wrong["null_channel"] = {"channel": None}
        if stream.spec.source.declared_channels is not None:
            wrong["undeclared_channel"] = {"channel": "zz"}
    return {
        reason: {**sound, "id": 1_000 + number, **changed}
        for number, (reason, changed) in enumerate(wrong.items())
    }


RULES = st.builds(
    lambda columns, within_ms: {"columns": columns, "within": f"{within_ms}ms of arrival"},
    st.sampled_from([["k"], ["value"], ["channel", "marker"], ["k", "candidate_ms"]]),
    st.sampled_from([1, 2, 10, 61, 10 * DAY_MS, 2**63 - 1]),
)


def deduplicated(stream: Stream, rule: dict[str, Any]) -> tuple[Stream, list[Record]]:
    """The stream under a rule, with the records that count; and the duplicates, by the model."""
    source = stream.spec.source.model_copy(update={"deduplicate": Deduplicate(**rule)})
    rows = {row["id"]: {n: row.get(n) for n in LANDING.names} for row in stream.rows()}

    def whole_row(record: Record) -> str:
        text = json.dumps(rows[record.payload["id"]], separators=(",", ":"))
        return sha256(text.encode()).hexdigest()

    def told(record: Record) -> tuple:
        return tuple(rows[record.payload["id"]][name] for name in rule["columns"])

    sequenced, by_arrival = stream.spec.source.sequence, stream.spec.arrival_is_event_time
    ordered = [
        replace(
            record,
            record_id=whole_row(record),
            sequence=record.sequence if sequenced else None,
            ts_ms=record.arrival_ms if by_arrival else record.ts_ms,
        )
        for record in stream.records
    ]
    _, repeated = without_duplicates(ordered, told, within_ms=source.deduplicate.within)
    gone = {record.payload["id"] for record in repeated}
    return (
        replace(
            stream,
            spec=stream.spec.model_copy(update={"source": source}),
            records=tuple(r for r in stream.records if r.payload["id"] not in gone),
        ),
        repeated,
    )


@law(6)
@given(batches(watermark=EVERY_STRATEGY), RULES)
def test_duplicates_are_those_of_the_model_and_move_nothing(session, streams, rule):
    streams = [over_midnight(stream) for stream in streams]
    expected = {id(stream): deduplicated(stream, rule) for stream in streams}

    def told(stream: Stream) -> tuple[Told, dict[int, str], dict[int, str]]:
        counting, _ = expected[id(stream)]
        engine = Engine.on(
            session,
            replace(stream, spec=counting.spec),
            beside=list(malformed(stream).values()),
            partitions=2,
        )
        days = {day_of(record.arrival_ms) for record in stream.records}
        by_day = [
            engine.marked(day).where(f"{c.REASON} = 'duplicate'").select("id", c.ARRIVAL_DAY)
            for day in sorted(days)
        ]
        alone = {row[0]: row[1] for rows in by_day for row in rows.collect()}
        return engine.told(), engine.malformed(), alone

    for stream, (answer, reasons, alone) in each(streams, told):
        counting, repeated = expected[id(stream)]
        same(stream, answer, reference(counting))
        # what is malformed is no duplicate, and nothing is a duplicate of it
        wrong = {row["id"]: reason for reason, row in malformed(stream).items()}
        assert reasons == wrong | {r.payload["id"]: "duplicate" for r in repeated}, stream
        assert alone == {r.payload["id"]: day_of(r.arrival_ms) for r in repeated}, stream


@law(4)
@given(batches(window=ON_A_GRID), st.integers(-20, 60), st.integers(1, 80))
def test_a_range_rebuilt_alone_is_that_range_of_the_whole(session, streams, ahead_ms, width_ms):
    def range_of(stream: Stream) -> TimeRange:
        return TimeRange(stream.start_ms + ahead_ms, stream.start_ms + ahead_ms + width_ms)

    def told(stream: Stream) -> tuple[list, list, list, list]:
        rebuild = Engine.on(session, stream).rebuild(Scope(range_of(stream)))
        return (*windows_of(rebuild), late_of(rebuild), firings_of(rebuild))

    for stream, parts in each(streams, told):
        whole, within = reference(stream), range_of(stream)
        expected = (whole.windows, whole.open, whole.late, whole.firings)
        assert parts == tuple(only(rows, within) for rows in expected), stream


@law(5)
@given(batches(window=ON_A_GRID))
def test_one_more_day_on_what_was_final_gives_what_one_go_gives(session, streams):
    """algorithm.md, section 8: what is final at P stays, the rest is rebuilt as of M."""
    held = [replace(over_midnight(stream), end_of_input=False) for stream in streams]

    def day_of_work(stream: Stream) -> tuple[int, Any, Any]:
        midnight_ms = midnight_of(day_of(stream.horizon_ms - 1))
        before = Engine.on(session, replace(stream, horizon_ms=midnight_ms)).history()
        first_ms = before.grid.first_not_final(before.watermark_reached(midnight_ms))
        scope = Scope(TimeRange(first_ms, EVERYTHING.end_ms), older_since_ms=midnight_ms)
        rebuild = Engine.on(session, stream).rebuild(scope)
        emitted, _ = windows_of(rebuild)
        return first_ms, emitted, late_of(rebuild)

    for stream, (first_ms, emitted, late) in each(held, day_of_work):
        midnight_ms = midnight_of(day_of(stream.horizon_ms - 1))
        before, after = reference(replace(stream, horizon_ms=midnight_ms)), reference(stream)
        final = TimeRange(MIN_WATERMARK, first_ms)
        assert only(before.windows, final) + emitted == after.windows, stream
        both = only(before.late, final) + late
        assert sorted(both, key=lambda row: row["id"]) == after.late, stream


def over_midnight(stream: Stream) -> Stream:
    """The stream, moved so that a midnight comes as half of its records have arrived."""
    middle_ms = stream.records[len(stream.records) // 2].arrival_ms
    by_ms = midnight_of(day_of(middle_ms)) + DAY_MS - middle_ms
    moved = tuple(
        replace(r, arrival_ms=r.arrival_ms + by_ms, ts_ms=r.ts_ms + by_ms) for r in stream.records
    )
    last_ms = max(record.arrival_ms for record in moved)
    return replace(stream, records=moved, start_ms=stream.start_ms + by_ms, horizon_ms=last_ms + 9)


# -------------------------------------------------------------------------------------------- edges


def a_stream(
    *records: tuple[int, int, str] | tuple[int, int, str, int],
    horizon_ms: int = 1_000,
    end_of_input: bool = False,
    **changed: Any,
) -> Stream:
    """Records (arrival, event time, channel, sequence) of one key, in windows of 10 ms."""
    content = {
        "pipeline": "edge",
        "source": {
            "table": "landing/stream",
            "arrival_time": "timestamp_millis(arrival_ms)",
            "event_time": "timestamp_millis(ts_ms)",
            "channel": "channel",
            "channels": changed.pop("channels", "discovered"),
            "key": {"k": "k"},
            "sequence": changed.pop("sequence", None),
        },
        "watermark": {"strategy": "ascending", "emit": changed.pop("emit", "per_record")},
        "window": {"tumbling": "10ms"},
        **changed,
    }
    if content["source"]["channels"] is None:
        content["source"]["channel"] = None
    return Stream(
        spec=parse_spec(content, origin="edge.yaml"),
        records=tuple(
            Record(
                arrival_ms=arrival_ms,
                ts_ms=ts_ms,
                record_id=f"{number:04d}",
                channel=channel,
                key=("x",),
                sequence=sequence[0] if sequence else None,
                payload={"id": number, "value": 10**number},
            )
            for number, (arrival_ms, ts_ms, channel, *sequence) in enumerate(records)
        ),
        start_ms=0,
        horizon_ms=horizon_ms,
        end_of_input=end_of_input,
    )


def bounded(bound_ms: int) -> dict[str, str]:
    return {"strategy": "bounded_out_of_orderness", "emit": "per_record", "bound": f"{bound_ms}ms"}


AS_TICKS = {"every": "7ms"}
EDGES = {
    "nothing has landed, channels discovered": a_stream(),
    "nothing has landed and the input has ended, channels discovered": a_stream(end_of_input=True),
    "nothing has landed, channels declared": a_stream(channels=["a", "b"]),
    "nothing has landed and the input has ended, one channel": a_stream(
        channels=None, end_of_input=True
    ),
    "everything lies behind the horizon": a_stream((50, 50, "a"), horizon_ms=50),
    "two newcomers of one instant, the one of the larger name first in event time": a_stream(
        *((1, 9, "a"), (1, 2, "b"), (2, 25, "a"), (2, 47, "b")),
        *((3, 60, "a"), (3, 58, "b"), (20, 8, "a")),
        allowed_lateness="1h",
    ),
    "two newcomers of one arrival, in order of sequence, on ticks": a_stream(
        *((1, 3, "a", 2), (1, 9, "b", 1), (2, 25, "a", 1), (2, 47, "b", 1), (9, 60, "a", 1)),
        *((10, 80, "b", 1),),
        sequence="seq",
        emit=AS_TICKS,
    ),
    "a newcomer arrives on a tick at which others speak one by one": a_stream(
        *((1, 5, "a"), (2, 6, "b"), (8, 30, "a"), (9, 45, "b"), (14, 3, "c"), (30, 90, "c")),
        emit=AS_TICKS,
        allowed_lateness="1h",
    ),
    "records of one arrival in order of sequence refire a window, on ticks": a_stream(
        *((1, 15, "a", 1), (20, 3, "a", 3), (20, 5, "a", 1), (20, 4, "a", 2), (20, 1, "a", 2)),
        channels=["a"],
        sequence="seq",
        emit=AS_TICKS,
        allowed_lateness="1h",
    ),
    "a sequence of any 64 bits, and none at all": a_stream(
        *((1, 15, "a", 2**63 - 1), (1, 5, "a", -(2**63)), (1, 4, "a"), (2, 3, "a", 0)),
        channels=["a"],
        sequence="seq",
        end_of_input=True,
    ),
    "the largest bound of all": a_stream(
        *((1, 5, "a"), (2, -5, "a"), (3, 40, "a")),
        channels=["a"],
        watermark=bounded(MAX_WATERMARK),
        end_of_input=True,
    ),
    "a bound that no float can tell, carried over a midnight": a_stream(
        *(
            (DAY_MS - 58, -52, "b"),
            (DAY_MS - 49, DAY_MS - 42, "c"),
            (DAY_MS - 40, DAY_MS - 67, "c"),
        ),
        *((DAY_MS - 31, 2 * DAY_MS - 60, "b"), (DAY_MS - 31, DAY_MS - 41, "a")),
        watermark=bounded(2**62),
        emit=AS_TICKS,
        horizon_ms=DAY_MS + 19,
    ),
    "a lateness that saturates, and an input that ends": a_stream(
        *((1, 5, "a"), (2, 25, "a"), (3, 6, "a")),
        channels=["a"],
        allowed_lateness=f"{MAX_WATERMARK}ms",
        end_of_input=True,
    ),
    "a lateness that saturates only after 1970": a_stream(
        *((1, -25, "a"), (2, 25, "a"), (3, -26, "a"), (4, 40, "a"), (5, 5, "a")),
        channels=["a"],
        allowed_lateness=f"{MAX_WATERMARK}ms",
        end_of_input=True,
    ),
    "a tick on the very millisecond of the horizon": a_stream(
        *((1, 15, "a"), (8, 3, "a")), channels=["a"], emit=AS_TICKS, horizon_ms=14
    ),
    "a tick on midnight, and days without an arrival": a_stream(
        *((DAY_MS - 1, DAY_MS + 15, "a"), (DAY_MS, DAY_MS, "a"), (5 * DAY_MS, DAY_MS + 4, "a")),
        channels=["a"],
        emit={"every": "1h"},
        horizon_ms=6 * DAY_MS,
    ),
    "a tick only after some midnights": a_stream(
        *((5, 15, "a"), (DAY_MS + 5, 3, "a"), (3 * DAY_MS, 4, "a"), (3 * DAY_MS, 95, "a")),
        channels=["a"],
        emit={"every": "3d"},
        horizon_ms=7 * DAY_MS,
    ),
}


@pytest.fixture(scope="module")
def told_of_edges(session):
    def told(stream: Stream) -> Told | Exception:
        try:
            return Engine.on(session, stream).told()
        except Exception as error:  # noqa: BLE001 - the test of this edge raises it
            return error

    answers = each(EDGES.values(), told)
    return dict(zip(EDGES, (answer for _, answer in answers), strict=True))


@pytest.mark.parametrize("edge", EDGES)
def test_the_engine_tells_what_the_reference_tells_where(edge, told_of_edges):
    if isinstance(told_of_edges[edge], Exception):
        raise told_of_edges[edge]
    same(EDGES[edge], told_of_edges[edge], reference(EDGES[edge]))


def test_what_comes_after_the_end_of_the_input_is_late(session):
    at_ms, last = 10, (12, 31, "a")
    stream = a_stream((1, 15, "a"), (3, 28, "a"), last, (13, 15, "a"), channels=["a"])
    clock = Clock(stream.horizon_ms, (Closure(EVERYTHING, at_ms),))
    rebuild = Engine.on(session, stream).rebuild(clock=clock)
    emitted, still_open = windows_of(rebuild)
    ended = reference(replace(stream, horizon_ms=at_ms, end_of_input=True))
    assert emitted == ended.windows
    assert still_open == []
    assert [(row["id"], row["watermark"], row["late_by"]) for row in late_of(rebuild)] == [
        (2, MAX_WATERMARK, MAX_WATERMARK - 39 + 1),
        (3, MAX_WATERMARK, MAX_WATERMARK - 19 + 1),
    ]


def test_columns_of_the_source_keep_their_values_whatever_their_names(session):
    stream = a_stream((1, 25, "a"), (2, 3, "a"), channels=["a"])
    names = {"value": "watermark_ms", "seq": "record_id", "k": "reason"}
    landing = Engine.on(session, stream).landing.withColumnsRenamed(names)
    spec = parse_spec(
        {
            **{"pipeline": "edge", "firings": True, "window": {"tumbling": "10ms"}},
            "source": {
                **{"table": "t", "channel": "channel", "channels": ["a"], "key": {"k": "reason"}},
                "arrival_time": "timestamp_millis(arrival_ms)",
                "event_time": "timestamp_millis(ts_ms)",
            },
            "watermark": {"strategy": "ascending", "emit": "per_record"},
            "aggregates": {"sum": "sum(watermark_ms)", "last": "max(record_id)"},
        },
        origin="edge.yaml",
    )
    engine = Engine(session, landing.withColumn("record_id", landing["id"]), stream)
    engine = replace(engine, stream=replace(stream, spec=spec, end_of_input=True))
    rebuild = engine.rebuild()
    (late,) = rebuild.late().toArrow().to_pylist()
    assert (late["source_watermark_ms"], late["source_record_id"], late["source_reason"]) == (
        *(10, 1),
        "x",
    )
    assert (late["watermark_ms"], late["reason"], len(late["record_id"])) == (24, "late", 32)
    (fired,) = (
        rebuild.firings(identity(spec, SourceColumns(tuple(engine.landing.columns))))
        .toArrow()
        .to_pylist()
    )
    assert (fired["sum"], fired["last"]) == (1, 0)
