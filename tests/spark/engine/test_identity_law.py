"""A record has one identity, and a day the same facts, whichever engine computes them.

They are hashes, of a text of the record. Those of hard rows, as Spark writes them, are kept in
tests/expressions/identities.json; KEEP=1 writes them again, on Spark.
"""

from __future__ import annotations

import json
import os
import random
from decimal import Decimal as D

import pyarrow as pa
import pytest
from lakes import a_spec
from pyspark.sql import functions as F
from spark_answers import EXPRESSIONS, TABLES, register

from strandline.engine import columns as c
from strandline.engine.records.identity import SourceColumns, content, identity
from strandline.lake.landing.table_landing import hashable

pytestmark = pytest.mark.spark
KEPT = EXPRESSIONS / "identities.json"


def numbers() -> pa.Table:
    """Floating point and DECIMAL of all sizes.

    Below 1e16: of larger doubles, and of FLOAT, Java before 19 writes more digits than tell them.
    """
    drawn = random.Random(1)
    doubles = [drawn.uniform(-1, 1) * 10 ** drawn.randint(-8, 15) for _ in range(200)]
    doubles += [1e-3, 9.999e-4, 1e7, 9_999_999.0, 1e15, 0.0, -0.0, 2.0**-20]
    decimals = [D(drawn.randint(-(10**size), 10**size)).scaleb(-18) for size in range(1, 21)] * 10
    decimals += [D(text).scaleb(-18) for text in ("0", "1", "-1", "999999999999", "1000000000000")]
    decimals += [None] * (len(doubles) - len(decimals))
    return pa.table(
        {
            "id": pa.array(range(len(doubles)), pa.int32()),
            "d": pa.array(doubles, pa.float64()),
            "q": pa.array(decimals, pa.decimal128(38, 18)),
        }
    )


def texts() -> pa.Table:
    """Signs that JSON escapes, and fractions inside of structs, arrays and maps."""
    signs = ['a"b\\c/d', "\t\n\r\b\f", "\u2028\u2029", "😀", "</script>", "é", "\x7f\x80", ""]
    struct = pa.struct([("p", pa.float64()), ("q", pa.decimal128(5, 2)), ("t", pa.string())])
    inside = [[{"p": 1e7, "q": D("-0.01"), "t": text}, None] for text in signs]
    return pa.table(
        {
            "id": pa.array(range(len(signs)), pa.int32()),
            "s": pa.array(signs),
            "m": pa.array([[(text, 0.5)] for text in signs], pa.map_(pa.string(), pa.float64())),
            "z": pa.array(inside, pa.list_(struct)),
            "mi": pa.array([[(1, D("-0.01"))]] * len(signs), pa.map_(pa.int32(), struct[1].type)),
        }
    )


OF_ROWS = {**TABLES, "more_numbers": numbers(), "more_texts": texts()}


@pytest.fixture(scope="module")
def rows(session, tmp_path_factory):
    register(session, tmp_path_factory.mktemp("tables"), OF_ROWS)
    return session


def hashes(session, table: str) -> dict[str, list[str]]:
    """The identities of a table's rows: without their nulls, with them, and by single columns."""
    read = session.table(table).withColumn(c.ARRIVAL, F.lit(1).cast("bigint"))
    own = [name for name in read.columns if not c.is_ours(name)]
    source = SourceColumns.of(read, own)
    every = SourceColumns(source.names, frozenset(own), kinds=source.kinds)
    asked = {
        "whole": identity(a_spec(), source),
        "with nulls": content(every),
        **{name: content(SourceColumns((name,), kinds=source.kinds)) for name in own},
        **{
            f"{name} in the facts of a day": F.xxhash64(
                hashable(read.schema[name], is_exact=bool(source.kinds))
            ).cast("string")
            for name in own
        },
    }
    found = read.select("id", *(column.alias(f"_{name}") for name, column in asked.items()))
    answers = sorted(found.collect(), key=lambda row: row["id"])
    return {name: [row[f"_{name}"] for row in answers] for name in asked}


def test_a_new_column_that_is_null_changes_no_day(rows):
    read = rows.table("nested")
    kinds = ["int", "double", "decimal(38,2)", "struct<p:decimal(38,2)>", "array<struct<p:double>>"]
    added = {
        f"new_{number}": F.lit(None).cast(kind)
        for number, kind in enumerate((*kinds, "map<string,double>"))
    }
    wider = read.withColumns(added)
    is_exact = bool(SourceColumns.of(read, read.columns).kinds)

    def hashes_of(fields):
        hashed = F.xxhash64(*(hashable(field, is_exact=is_exact) for field in fields))
        return wider.select(hashed).collect()

    assert hashes_of(wider.schema.fields) == hashes_of(read.schema.fields)


def test_a_record_is_the_same_on_each_engine(rows):
    found = {table: hashes(rows, table) for table in OF_ROWS}
    if os.environ.get("KEEP"):
        KEPT.write_text(json.dumps(found, indent=0), encoding="utf-8")
    before = json.loads(KEPT.read_text(encoding="utf-8"))
    differ = {
        (table, name): [n for n, (a, b) in enumerate(zip(ours, kept, strict=True)) if a != b]
        for table, columns in found.items()
        for name, ours in columns.items()
        if ours != (kept := before[table][name])
    }
    assert differ == {}
