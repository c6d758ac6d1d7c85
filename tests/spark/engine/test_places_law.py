"""By window functions the places of records tell what a walk over them does."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from drawn import ROUNDS, drawn
from hypothesis import strategies as st
from lakes import a_spec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.windows.order import (
    FIRES,
    FIRINGS,
    FIRST,
    UNTIL,
    in_order,
    rules_of,
    sorted_by_place,
)
from strandline.engine.windows.running import at_counts
from strandline.engine.windows.walk import Records, walk
from strandline.errors import InputError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.hypothesis,
    pytest.mark.only_on_spark(reason="goes by the order of records"),
]

KEY, ID, RULE = c.key_column("device"), "id", "rule"
PURGING = {"trigger": {"count": 3, "purging": True}}
BY_PLACE: list[dict[str, Any]] = [
    {"trigger": {"count": 1}},
    {"trigger": {"count": 3}},
    PURGING,
    {"evictor": {"count": 2}},
    {"evictor": {"count": 0}},
    {"evictor": {"count": 1, "after": True}},
    {"evictor": {"count": 10**12}},
    {"trigger": {"event_time": {}, "purging": True}, "evictor": {"count": 2, "after": True}},
    {"trigger": {"count": 2}, "evictor": {"count": 3}},
    {"trigger": {"count": 2}, "evictor": {"count": 3, "after": True}},
    {"trigger": {"count": 2}, "evictor": {"count": 0, "after": True}},
    PURGING | {"evictor": {"count": 1}},
    {"window": {"global": {}}},
    {"window": {"count": 5, "every": 2}},
]
SPECS = [a_spec(firings=True, **rules) for rules in BY_PLACE]
WINDOWS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=14),
        st.none() | st.integers(0, 7),
    ),
    min_size=30,
    max_size=30,
)
"""Of each window of a key the instants and event times of its records, and from when it fires."""


def rows_of(windows: list[Any]) -> list[dict[str, Any]]:
    """The records as windows have accepted them, in an order that means nothing."""
    rows = [
        {
            **{KEY: "xy"[number % 2], c.WINDOW: number // 2, ID: f"{number:02d}-{nth:02d}"},
            **{c.INSTANT: instant, c.SEQUENCE: 0, c.TS: ts_ms},
            **{c.ARRIVAL: instant, c.ARRIVAL_DAY: date(1970, 1, 1)},
            **{c.FIRE_FROM: 2**63 - 1 if fires is None else fires, c.FIRE_AT: fires},
        }
        for number, (records, fires) in enumerate(windows)
        for nth, (instant, ts_ms) in enumerate(records)
    ]
    return sorted(rows, key=lambda row: row[ID][::-1])


def walked(rows: list[dict[str, Any]], spec: Any) -> dict[str, tuple[Any, ...]]:
    """What a walk over each window tells of its records, by their id."""
    found, groups = {}, defaultdict(list)
    for row in sorted(rows, key=lambda row: (row[c.INSTANT], row[c.TS], row[ID])):
        groups[row[KEY], row[c.WINDOW]].append(row)
    for group in groups.values():
        records = Records(
            late=[row[c.INSTANT] >= row[c.FIRE_FROM] for row in group],
            ts_ms=[row[c.TS] for row in group],
            trigger_values=[],
            evictor_values=[],
            fired=group[0][c.FIRE_AT] is not None,
        )
        told = walk(records, rules_of(spec))
        for row, *of_record in zip(group, told.fires, told.first, told.until, strict=True):
            found[row[ID]] = (*of_record, told.firings)
    return found


def test_window_functions_tell_what_a_walk_over_the_records_does(session):
    for number in range(ROUNDS):
        rows = rows_of(drawn(WINDOWS, f"windows {number}"))
        records = session.createDataFrame(pa.Table.from_pylist(rows))
        of_rules = [
            in_order(records, spec, F.col(ID), [ID]).select(
                F.lit(rule).alias(RULE), ID, FIRES, FIRST, UNTIL, FIRINGS
            )
            for rule, spec in enumerate(SPECS)
        ]
        found: dict[int, dict[str, tuple[Any, ...]]] = defaultdict(dict)
        for row in reduce(DataFrame.unionByName, of_rules).collect():
            found[row[RULE]][row[ID]] = tuple(row)[2:]
        for rule, spec in enumerate(SPECS):
            assert found[rule] == walked(rows, spec), BY_PLACE[rule]


@pytest.mark.parametrize(
    "source",
    [{}, {"source__sequence": "seq"}, {"source__key": {"device": "'x'"}}, {"source__key": []}],
    ids=["no sequence", "a sequence", "one key for all", "no key"],
)
def test_records_are_sorted_once_and_hashed_where_they_are_equal(session, source):
    spec = a_spec(firings=True, trigger={"count": 3}, **source)
    rows = session.createDataFrame(pa.Table.from_pylist(rows_of([([(0, 0), (1, 1)], 1)])))
    # as records are read, where nothing of the landing table tells it
    literals = {} if spec.source.sequence else {c.SEQUENCE: F.lit(0).cast("bigint")}
    if spec.source.key.get("device") == "'x'":
        literals[KEY] = F.lit("x")
    identity = F.sha2(ID, 256)
    placed = sorted_by_place(rows.withColumns(literals), spec, identity)
    told = at_counts(placed, spec, {"n": F.count(F.lit(1))}, identity)
    plan = told._jdf.queryExecution().executedPlan().toString()
    assert (plan.count("Sort ["), plan.count("Exchange ")) == (1, 1), plan
    assert "sha2" in plan[plan.index("Sort [") :].splitlines()[0]


def test_what_is_compared_is_a_number(session):
    spec = a_spec(firings=True, trigger={"delta": 5, "of": ID})
    records = session.createDataFrame(pa.Table.from_pylist(rows_of([([(0, 0)], 1)])))
    with pytest.raises(InputError, match=r"meter: trigger\.of: is STRING; give a number"):
        in_order(records, spec, F.col(ID), [ID])
