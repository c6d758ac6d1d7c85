"""What is read as what: malformed rows and their reasons, times, channels, keys and expressions."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from engines import ENGINE
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.position.axis import Axis
from strandline.engine.records.identity import SourceColumns
from strandline.engine.records.quarantine import quarantine_malformed
from strandline.engine.records.read import read_records
from strandline.errors import InputError
from strandline.model.intervals import instant_of
from strandline.spec import PipelineSpec, parse_spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

DAY = date(2013, 1, 5)
NOON = datetime(2013, 1, 5, 12, tzinfo=UTC)
HOUR_MS = 3_600_000
LANDING = pa.schema(
    [
        ("id", pa.int64()),
        ("arrived_on", pa.date32()),
        ("arrived", pa.timestamp("us", tz="UTC")),
        ("happened", pa.string()),
        ("origin", pa.string()),
        ("k", pa.string()),
        ("ok", pa.bool_()),
        ("n", pa.int64()),
    ]
)
SOUND = {
    **{"arrived_on": DAY, "arrived": NOON, "happened": "2013-01-05T11:00:00Z"},
    **{"origin": "a", "k": "x", "ok": True, "n": 7},
}


def a_spec(*, window: dict[str, str] | None = None, **source: Any) -> PipelineSpec:
    return parse_spec(
        {
            "pipeline": "p",
            "source": {
                "table": "landing/p",
                "arrival_date": "arrived_on",
                "arrival_time": "arrived",
                "event_time": "happened",
                "channel": "origin",
                "channels": ["a", "b"],
                "key": ["k"],
                **source,
            },
            "watermark": {"strategy": "ascending", "emit": "per_record"},
            "window": window or {"tumbling": "1h"},
        },
        origin="p.yaml",
    )


@pytest.fixture
def landed(spark):
    def land(*changed: dict[str, Any]) -> DataFrame:
        rows = [{"id": number, **SOUND, **row} for number, row in enumerate(changed)]
        return spark.createDataFrame(pa.Table.from_pylist(rows, schema=LANDING))

    return land


def read(landing: DataFrame, spec: PipelineSpec) -> list[dict[str, Any]]:
    """The rows with the engine's columns, in the order of their ids."""
    rows = read_records(landing, spec).toArrow().to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def reasons(landing: DataFrame, spec: PipelineSpec) -> list[str | None]:
    return [row[c.REASON] for row in read(landing, spec)]


# -------------------------------------------------------------------------------- malformed reasons

FAULTS = {
    "null_event_time": {"happened": None},
    "unparsable_event_time": {"happened": "soon"},
    "null_arrival": {"arrived": None},
    "arrival_outside_partition": {"arrived": NOON + timedelta(days=1)},
    "ahead_of_arrival": {"happened": "2013-02-01"},
    "null_channel": {"origin": None},
    "undeclared_channel": {"origin": "c"},
    "null_key": {"k": None},
    "invalid": {"ok": False},
    "event_time_out_of_range": {"happened": "0000-12-31"},
}
"""In the order in which they are looked for: the first that applies is the reason."""
JUDGED = {"valid": "ok", "max_ahead": "1h"}


def test_each_fault_has_its_reason(landed):
    assert reasons(landed({}, *FAULTS.values()), a_spec(**JUDGED)) == [None, *FAULTS]


def test_the_first_fault_that_applies_is_the_reason(landed):
    rows = []
    for number in range(len(FAULTS)):
        concatenated: dict[str, Any] = {}
        for fault in reversed(list(FAULTS.values())[number:]):
            concatenated |= fault
        rows.append(concatenated)
    assert reasons(landed(*rows), a_spec(**JUDGED)) == list(FAULTS)


def test_what_nobody_asked_for_is_no_fault(landed):
    rows = [FAULTS[reason] for reason in ("ahead_of_arrival", "undeclared_channel", "invalid")]
    spec = a_spec(channels="discovered", key=[])
    assert reasons(landed(*rows, {"k": None}), spec) == [None] * 4
    alone = a_spec(channel=None, channels=None)
    assert reasons(landed({"origin": None}, {"origin": "c"}), alone) == [None, None]
    assert reasons(landed({"origin": None}, {"origin": "c"}), spec) == ["null_channel", None]


def test_a_partition_holds_the_arrivals_of_its_day(landed):
    midnight = datetime(2013, 1, 5, tzinfo=UTC)
    rows = [
        {"arrived": midnight},
        {"arrived": midnight + timedelta(days=1, milliseconds=-1)},
        {"arrived": midnight + timedelta(days=1)},
        {"arrived": midnight - timedelta(milliseconds=1)},
        {"arrived_on": None},
    ]
    outside = "arrival_outside_partition"
    assert reasons(landed(*rows), a_spec()) == [None, None, outside, outside, outside]
    found = read(landed(*rows), a_spec(arrival_date=None))
    assert [row[c.REASON] for row in found] == [None] * 5
    days = [5, 5, 6, 4, 5]
    assert [row[c.ARRIVAL_DAY] for row in found] == [date(2013, 1, day) for day in days]


def test_ahead_of_arrival_is_more_than_the_limit(landed):
    def after(**later: int) -> dict[str, str]:
        return {"happened": (NOON + timedelta(**later)).isoformat()}

    rows = landed(after(hours=1), after(hours=1, milliseconds=1))
    assert reasons(rows, a_spec(max_ahead="1h")) == [None, "ahead_of_arrival"]
    rows = landed(after(), after(milliseconds=1))
    assert reasons(rows, a_spec(max_ahead="0ms")) == [None, "ahead_of_arrival"]
    assert reasons(rows, a_spec(max_ahead="9223372036854775807ms")) == [None, None]


def test_valid_must_be_true(landed):
    rows = landed({"ok": True}, {"ok": False}, {"ok": None})
    assert reasons(rows, a_spec(valid="ok")) == [None, "invalid", "invalid"]
    assert reasons(rows, a_spec(valid="n > 7 OR ok IS NULL")) == ["invalid", "invalid", None]


def test_rows_that_where_leaves_out_are_not_there_at_all(landed):
    rows = landed({"ok": True}, {"ok": False}, {"ok": None}, {"happened": None})
    found = read(rows, a_spec(where="ok"))
    assert [(row["id"], row[c.REASON]) for row in found] == [(0, None), (3, "null_event_time")]


def test_the_day_and_the_order_of_records_are_computed_for_those_alone_that_where_keeps(landed):
    rows = landed({"k": f"{DAY}", "origin": "7"}, {"ok": False, "k": "soon", "origin": "?"})
    of_texts = {"arrival_date": "CAST(k AS DATE)", "sequence": "CAST(origin AS INT)"}
    records = read_records(rows, a_spec(where="ok", **of_texts))
    of_the_day = records.where((F.col(c.ARRIVAL_DAY) == DAY) & (F.col(c.SEQUENCE) < 9))
    assert [row["id"] for row in of_the_day.collect()] == [0]


HALF_PAST = {"tumbling": "1h", "offset": "30m"}
OUT = "event_time_out_of_range"


@pytest.mark.parametrize(
    ("happened", "window", "reason"),
    [
        ("0001-01-01T00:00:00Z", None, None),
        ("0000-12-31T23:59:59.999Z", None, OUT),
        ("0001-01-01T00:29:59.999Z", HALF_PAST, OUT),
        ("0001-01-01T00:30:00Z", HALF_PAST, None),
        ("9999-12-31T22:59:59.999Z", None, None),
        ("9999-12-31T23:00:00Z", None, OUT),
        ("9999-12-31T23:29:59.999Z", HALF_PAST, None),
        ("9999-12-31T23:30:00Z", HALF_PAST, OUT),
        ("+10000-01-01T00:00:00Z", None, OUT),
        ("+294247-01-10T04:00:54Z", None, OUT),
        ("-290307-12-21T19:59:06Z", None, OUT),
        ("1970-01-01T00:00:00Z", {"tumbling": "9223372036854775807ms"}, OUT),
    ],
)
def test_an_event_time_and_its_window_stay_within_the_years(landed, happened, window, reason):
    assert reasons(landed({"happened": happened}), a_spec(window=window)) == [reason]


def test_the_whole_row_of_a_malformed_record_is_kept(landed):
    spec = a_spec()
    landing = landed({}, {"k": None}, {"k": None, "id": 1}, {"happened": "soon"})
    landing = landing.withColumnRenamed("n", "reason")
    records = read_records(landing, spec)
    rows = quarantine_malformed(records, spec, SourceColumns.of(landing)).toArrow().to_pylist()
    assert sorted((row["id"], row["reason"]) for row in rows) == [
        (1, "null_key"),
        (1, "null_key"),
        (3, "unparsable_event_time"),
    ]
    for row in rows:
        assert (row["source_reason"], row["arrived"], row["origin"]) == (7, NOON, "a")
        assert row["quarantine_date"] == DAY
        nothing = ("watermark_ms", "late_by_ms", "slot_start", "missed_windows")
        assert [row[name] for name in nothing] == [None] * 4
        assert row["spec_fingerprint"] == spec.spec_fingerprint
    equal = sorted(row["record_id"] for row in rows if row["id"] == 1)
    assert equal[1] == f"{equal[0]}-2"
    assert len({row["record_id"] for row in rows}) == 3


# -------------------------------------------------------------------------------------------- times

TEXTS = {
    "2013-01-05T10:00:00Z": NOON - timedelta(hours=2),
    "2013-01-05 10:00:00": NOON - timedelta(hours=2),
    "2013-01-05T10:00:00+02:00": NOON - timedelta(hours=4),
    " 2013-01-05 ": NOON - timedelta(hours=12),
    "2013-01-05T11:59:59.999999Z": NOON - timedelta(milliseconds=1),
    "1969-12-31T23:59:59.9991Z": datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
}
NO_TIMES = ["12:00:00", "T12:00:00Z", "12:00", "", " ", "soon", "now", "today", "epoch",
            "2013-13-01", "2013-02-29", "05.01.2013", "1357383600000", "20130105"]  # fmt: skip


def test_a_text_is_a_time_if_it_names_a_date(landed):
    found = read(landed(*({"happened": text} for text in TEXTS)), a_spec())
    assert [row[c.TS] for row in found] == [instant_of(moment) for moment in TEXTS.values()]
    assert [row[c.REASON] for row in found] == [None] * len(TEXTS)


def test_a_text_that_is_no_time_is_unparsable(landed):
    found = reasons(landed(*({"happened": text} for text in NO_TIMES)), a_spec())
    assert dict(zip(NO_TIMES, found, strict=True)) == dict.fromkeys(
        NO_TIMES, "unparsable_event_time"
    )


def test_an_arrival_that_is_no_time_is_none(landed):
    rows = landed({"happened": "soon"}, {"happened": None}, {"happened": "2013-01-05T10:00:00"})
    found = reasons(rows, a_spec(arrival_time="happened", event_time="arrived"))
    assert found == ["null_arrival", "null_arrival", None]


def test_a_time_without_a_zone_is_utc(landed):
    landing = landed({}).withColumn("at", F.lit("2013-01-05 11:00:00.0009").cast("timestamp_ntz"))
    (row,) = read(landing, a_spec(event_time="at", arrival_time="at"))
    assert row[c.TS] == row[c.ARRIVAL] == instant_of(NOON) - HOUR_MS
    (row,) = read(landed({}), a_spec(event_time="arrived_on"))
    assert row[c.TS] == instant_of(NOON) - 12 * HOUR_MS


@pytest.mark.parametrize("field", ["event_time", "arrival_time"])
def test_a_number_is_no_time_without_an_expression(landed, field):
    with pytest.raises(InputError) as refused:
        read(landed({}), a_spec(**{field: "n"}))
    assert refused.value.place == f"p: source.{field}"
    assert refused.value.problem == "'n' is BIGINT, which is not a time"
    assert refused.value.way_out == "give an expression such as timestamp_millis(n)"


def test_an_expression_gives_a_time_or_nothing(landed):
    spec = a_spec(event_time="timestamp_millis(n)")
    found = read(landed({"n": -5}, {"n": None}), spec)
    assert [(row[c.TS], row[c.REASON]) for row in found] == [(-5, None), (None, "null_event_time")]


# --------------------------------------------------------------- channels, keys, days and sequences


def test_every_column_of_the_source_may_be_an_expression(landed):
    spec = a_spec(
        arrival_date="to_date(arrived)",
        arrival_time="arrived + INTERVAL 1 SECOND",
        event_time="try_to_timestamp(happened)",
        channel="upper(origin)",
        channels=["A"],
        key={"pair": "concat(k, origin)", "id": "n + 1"},
        sequence="id * 2",
    )
    (row,) = read(landed({}), spec)
    assert row[c.REASON] is None
    assert (row[c.ARRIVAL_DAY], row[c.ARRIVAL]) == (DAY, instant_of(NOON) + 1_000)
    assert (row[c.CHANNEL], row[c.SEQUENCE]) == ("A", 0)
    assert (row[c.key_column("pair")], row[c.key_column("id")], row["id"]) == ("xa", 8, 0)


def test_a_column_is_meant_by_its_exact_name_before_any_expression(landed):
    landing = landed({}).withColumnsRenamed({"happened": "happened at (UTC)", "k": "a`b"})
    (row,) = read(landing, a_spec(event_time="happened at (UTC)", key={"k": "a`b"}))
    assert (row[c.REASON], row[c.key_column("k")]) == (None, "x")


def test_channels_are_compared_as_texts(landed):
    spec = a_spec(channel="n", channels=[7, "8"])
    rows = landed({"n": 7}, {"n": 8}, {"n": 9}, {"n": None})
    assert reasons(rows, spec) == [None, None, "undeclared_channel", "null_channel"]


def test_any_part_of_a_key_may_be_missing(landed):
    rows = landed({}, {"k": None}, {"n": None}, {"k": None, "n": None})
    assert reasons(rows, a_spec(key=["k", "n"])) == [None, "null_key", "null_key", "null_key"]
    assert reasons(rows, a_spec(key=[])) == [None] * 4


def test_a_partition_may_be_named_by_a_text(landed):
    rows = landed({"k": "2013-01-05"}, {"k": "2013-01-06"}, {"k": "yesterday"})
    outside = "arrival_outside_partition"
    assert reasons(rows, a_spec(arrival_date="k", key=[])) == [None, outside, outside]


def test_a_record_without_a_sequence_comes_first_in_its_instant(landed):
    spec = a_spec(sequence="n")
    found = read(landed({"n": None}, {"n": -(2**63) + 1}, {"n": 0}, {"n": 2**63 - 1}), spec)
    instants = [row[c.INSTANT] for row in found]
    assert instants == sorted(instants)
    assert len(set(instants)) == 4
    axis = Axis.of(spec, 0)
    assert [axis.sequence_of(int(i)) for i in instants] == [-(2**63), -(2**63) + 1, 0, 2**63 - 1]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ({"event_time": "nope"}, "event_time"),
        ({"arrival_time": "nope"}, "arrival_time"),
        ({"arrival_date": "nope"}, "arrival_date"),
        ({"channel": "nope"}, "channel"),
        ({"key": ["k", "nope"]}, "key.nope"),
        ({"key": {"pair": "concat(k, nope)"}}, "key.pair"),
        ({"sequence": "nope"}, "sequence"),
        ({"where": "nope > 1"}, "where"),
        ({"valid": "nope"}, "valid"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_those_that_are(landed, source, place):
    with pytest.raises(InputError) as refused:
        read(landed({}), a_spec(**source))
    assert refused.value.place == f"p: source.{place}"
    assert "nope" in refused.value.problem
    assert refused.value.way_out == f"its columns are {', '.join(LANDING.names)}"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"event_time": "happened +"}, "nor an expression"),
        ({"where": "n"}, "gives bigint"),
        ({"valid": "k"}, "gives string"),
        ({"arrival_date": "n"}, "is BIGINT"),
        ({"sequence": "k"}, "is STRING"),
        ({"sequence": "n / 2"}, "is DOUBLE"),
    ],
)
def test_what_has_the_wrong_type_is_refused_with_a_way_out(landed, source, problem):
    with pytest.raises(InputError) as refused:
        read(landed({}), a_spec(**source))
    assert refused.value.place == f"p: source.{next(iter(source))}"
    assert problem in refused.value.problem
    assert refused.value.way_out


@pytest.mark.parametrize(
    ("place", "text", "problem", "on_sail_alone"),
    [
        ("key.k", "arrived - TIMESTAMP'2013-01-01'", "gives interval day to second, which", False),
        ("key.k", "array(struct(INTERVAL '1' YEAR))", "which a Delta table cannot store", False),
        ("key.k", "NULL", "gives void, which a Delta table cannot store", False),
        ("key.k", "array(map(origin, n))", "is a MAP", True),
        ("channel", "n * 1e10D", "is double, which Sail writes otherwise", True),
        ("channel", "encode(origin, 'UTF-8')", "is binary, which Sail writes otherwise", True),
    ],
)
def test_a_key_or_a_channel_that_cannot_be_kept_or_compared_is_refused(
    landed, place, text, problem, on_sail_alone
):
    changed = {"key": {"k": text}} if place == "key.k" else {place: text}
    if on_sail_alone and ENGINE != "sail":
        read(landed({}), a_spec(**changed))
        return
    with pytest.raises(InputError) as caught:
        read(landed({}), a_spec(**changed))
    assert caught.value.place == f"p: source.{place}"
    assert problem in caught.value.problem
