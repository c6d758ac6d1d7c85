"""A pipeline's test refuses the rows that the engine refuses, for the same reason."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import product

import pytest

from strandline.engine import columns as c
from strandline.engine.records.read import read_records
from strandline.spec import parse_spec
from strandline.trial.rows import read_rows

pytestmark = pytest.mark.spark

AT = datetime(2024, 3, 1, 10, tzinfo=UTC)
SPEC = {
    "pipeline": "odd",
    "source": {
        "table": "landing/odd",
        "arrival_date": "day",
        "arrival_time": "arrived",
        "event_time": "at",
        "channel": "origin",
        "channels": ["a", "b"],
        "retired": {"b": "2024-03-01T12:00:00Z"},
        "key": ["key"],
        "where": "n <> 7",
        "valid": "n >= 0",
        "max_ahead": "1h",
    },
    "watermark": {"strategy": "bounded_out_of_orderness", "bound": "1h", "emit": {"every": "1s"}},
    "window": {"tumbling": "1h"},
    "aggregates": {"n": "count(*)"},
}
SCHEMA = "nth int, day date, arrived timestamp, at string, origin string, key string, n int"


def odd_rows():
    """Rows in which up to all columns are odd."""
    hour = timedelta(hours=1)
    choices = {
        "day": [AT.date(), date(2024, 3, 2), None],
        "arrived": [AT + hour, AT + 3 * hour, None],
        "at": ["2024-03-01T10:00:00Z", "2024-03-01 13:30:00", "tomorrow", None],
        "origin": ["a", "b", "c", None],
        "key": ["k", None],
        "n": [1, -1, 7, None],
    }
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def test_reasons_are_those_of_the_engine_for_rows_that_are_odd_in_every_way(spark):
    spec, rows = parse_spec(SPEC, origin="odd.yaml"), odd_rows()
    data = [(nth, *row.values()) for nth, row in enumerate(rows, 1)]
    frame = spark.createDataFrame(data, SCHEMA)
    read = read_records(frame, spec).select("nth", c.REASON)
    of_engine = {row[0]: row[1] for row in read.collect()}
    mine = read_rows(spec, rows)
    of_test = mine.refused | {int(record.record_id): None for record in mine.records}
    assert len(of_test) > 500
    assert {*of_test.values()} > {None, "null_key", "invalid", "undeclared_channel"}
    assert of_test == of_engine
