"""A worker calls a function once a firing, with the records that this holds, in their order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st

from strandline.engine.replay.calls import Calls, call_partition
from strandline.engine.replay.operator_io import NEVER
from strandline.spec.functions import ProcessError

SOURCE = """
def told(key, window, records, watermark):
    ids = records["id"].to_pylist()
    if not ids:
        raise ValueError("no record")
    return [{"said": f"{key['k']} {window.start:%S} {window.end:%S} {watermark} {ids}"}]
"""
CALLS = Calls(
    function="called_words:told",
    files={"called_words.py": SOURCE},
    returns={"said": "string"},
    keys={"k": "own_k"},
    group=("own_k", "window"),
    order=("at",),
    lifetime=("ts", "first", "until"),
    record="record",
    firing="firing",
)
FIRING = pa.struct(
    [(name, pa.int64()) for name in ("number", "start_ms", "end_ms", "watermark_ms")]
)
COLUMNS = pa.schema(
    [
        ("own_k", pa.string()),
        *((name, pa.int64()) for name in ("window", "at", "ts", "first", "until")),
        ("record", pa.struct([("id", pa.int64())])),
        ("firing", FIRING),
    ]
)


def record(key: str, at: int, ts_ms: int, first: int, until: int = NEVER) -> dict[str, Any]:
    own = {"own_k": key, "window": 0, "at": at, "ts": ts_ms, "first": first, "until": until}
    return own | {"record": {"id": at}}


def firing(key: str, number: int, start_ms: int, end_ms: int) -> dict[str, Any]:
    of = {"number": number, "start_ms": start_ms, "end_ms": end_ms, "watermark_ms": 7 * number}
    return {"own_k": key, "window": 0, "firing": of}


def said(rows: list[dict[str, Any]]) -> list[str]:
    table = pa.Table.from_pylist(rows, schema=COLUMNS)
    batches = call_partition(table.to_batches(max_chunksize=2), CALLS)
    return sorted(row["said"] for batch in batches for row in batch.to_pylist())


def test_a_firing_has_the_records_of_its_group_that_came_before_it_and_were_not_evicted():
    rows = [
        firing("b", 1, 0, 9_000),
        record("a", 3, 100, first=2),
        record("a", 1, 4_000, first=1, until=2),
        firing("a", 2, 0, 9_000),
        record("b", 4, 100, first=1),
        record("a", 2, 100, first=1),
        firing("a", 1, 0, 9_000),
    ]
    assert said(rows) == ["a 00 09 14 [2, 3]", "a 00 09 7 [1, 2]", "b 00 09 7 [4]"]


def test_a_firing_of_a_session_has_the_records_that_lie_in_it():
    rows = [
        record("a", 1, 1_000, first=1),
        record("a", 2, 5_000, first=1),
        record("a", 3, 2_000, first=1),
        firing("a", 1, 1_000, 4_000),
        firing("a", 2, 1_000, 8_000),
    ]
    assert said(rows) == ["a 01 04 7 [1, 3]", "a 01 08 14 [1, 2, 3]"]


NUMBERS = st.integers(1, 6)


@DEAR
@given(
    st.lists(st.tuples(st.integers(0, 9), NUMBERS, st.integers(0, 6)), max_size=9),
    st.lists(st.tuples(NUMBERS, st.integers(0, 5), st.integers(1, 6)), max_size=6),
)
def test_a_firing_has_each_record_that_is_there_by_its_number_and_lies_in_its_window(
    records, firings
):
    rows = [
        record("a", at, second * 1_000, first=first, until=first + lasts)
        for at, (second, first, lasts) in enumerate(records)
    ]
    fired = [(n, start * 1_000, (start + size) * 1_000) for n, start, size in firings]
    expected = []
    for number, start_ms, end_ms in fired:
        ids = [
            row["at"]
            for row in rows
            if row["first"] <= number < row["until"] and start_ms <= row["ts"] < end_ms
        ]
        if ids:
            expected.append(f"a {start_ms // 1000:02} {end_ms // 1000:02} {7 * number} {ids}")
    holding = {text.split(" [")[0] for text in expected}
    calls = [
        firing("a", *one)
        for one in fired
        if f"a {one[1] // 1000:02} {one[2] // 1000:02} {7 * one[0]}" in holding
    ]
    assert said([*calls, *rows]) == sorted(expected)


def test_a_partition_without_a_row_gives_none():
    assert not said([])


def test_a_function_that_fails_names_its_key_and_its_window():
    place = r"strandline process: key {'k': 'a'}, window 1970-01-01T00:00:00\+00:00 to .*: "
    with pytest.raises(ProcessError, match=place + "ValueError: no record"):
        said([firing("a", 1, 0, 1_000)])
