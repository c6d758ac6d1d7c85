"""Runs of pipelines with a Python function of their own."""

from __future__ import annotations

import pytest
from lakes import Line, a_spec, a_week, land

from strandline.errors import InputError
from strandline.spec.process import Process

pytestmark = pytest.mark.spark

SOURCE = """
def spread(key, window, records, watermark):
    amounts = records["amount"].to_pylist()
    spread = max(amounts) - min(amounts)
    return [{"spread": spread, "told": records.select(["source", "amount"]).to_pylist()}]
"""
FAILS = SOURCE.replace("amounts =", "assert window.start.day < 2, key['device']; amounts =")


@pytest.mark.story
def test_what_a_function_returns_is_published_and_its_error_publishes_nothing(spark, tmp_path):
    plain = a_spec(
        process="meters:spread",
        returns={"spread": "bigint", "told": "array<struct<source:string,amount:bigint>>"},
    )

    def of(source: str) -> Line:
        process = Process(name="meters:spread", files={"meters.py": source})
        return Line(spark, tmp_path, plain.model_copy(update={"process": process}))

    line, rows = of(SOURCE), a_week(days=2)
    land(tmp_path, rows)
    line.advance("2")
    windows = line.rows("windows")
    assert windows
    assert {row["spread"] >= 0 for row in windows} == {True}
    assert all(len(row["told"]) == row["records"] for row in windows)
    assert all(isinstance(one["amount"], int) for row in windows for one in row["told"])

    before, broken = line.versions(), of(FAILS)
    with pytest.raises(InputError) as failed:
        broken.advance("3")
    told = str(failed.value)
    assert told.startswith("meter: process: key {'device': 'd")
    assert "window 2024-03-02T" in told
    assert "AssertionError: d" in told
    assert "(meters.py, line 3)" in told
    published = ("windows", "completeness")  # what observing finds malformed is no result
    assert [line.versions()[name] for name in published] == [before[name] for name in published]
    assert broken.ledger[-1].step == "failed"
    assert "window 2024-03-02T" in (broken.ledger[-1].message or "")
