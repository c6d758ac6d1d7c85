"""Queries over a few hard rows, and what an engine answers them: Spark's answers are kept."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal as D
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import tokenize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

EXPRESSIONS = Path(__file__).parents[1] / "expressions"
KEPT = EXPRESSIONS / "spark.json"
"""Spark's own answers, a line for each query."""
EXAMPLE = re.compile(r"> (SELECT .*?);\s*$", re.MULTILINE | re.DOTALL)
"""What the documentation of a function calls it in."""


def us(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


nan, inf = math.nan, math.inf

NUMBERS = pa.table(
    {
        "id": pa.array(range(1, 9), pa.int32()),
        "g": pa.array(["a", "a", "a", "b", "b", "b", "c", "c"]),
        "b": pa.array([1, -1, 127, -128, None, 7, 0, 3], pa.int8()),
        "s": pa.array([1, -1, 32767, -32768, None, 7, 0, 3], pa.int16()),
        "i": pa.array([1, -1, 2147483647, -2147483648, None, 7, 0, 3], pa.int32()),
        "l": pa.array(
            [1, -1, 9223372036854775807, -9223372036854775808, None, 7, 0, 3], pa.int64()
        ),
        "j": pa.array([2, -3, 5, 7, 2, None, 0, -3], pa.int32()),
        "m": pa.array([20, -30, 50, 70, 20, None, 10, -30], pa.int64()),
        "f": pa.array([1.5, -0.0, 0.1, 3.4e38, None, nan, inf, 16777216.0], pa.float32()),
        "d": pa.array([2.5, -0.0, 0.1, 1.7e308, None, nan, -inf, -3.5], pa.float64()),
        "x": pa.array([2.5, -2.5, 0.1, 1e7, None, 1e-5, 123456789.125, 0.0], pa.float64()),
        "n": pa.array(
            [
                D("1.25"),
                D("-2.35"),
                D("99999999.99"),
                D("0.00"),
                None,
                D("0.05"),
                D("2.50"),
                D("-0.01"),
            ],
            pa.decimal128(10, 2),
        ),
        "w": pa.array(
            [
                D("1"),
                D("-1"),
                D("99999999999999999999999999999999999999"),
                D("0"),
                None,
                D("7"),
                D("3"),
                D("2"),
            ],
            pa.decimal128(38, 0),
        ),
        "q": pa.array(
            [
                D("1.123456789012345678"),
                D("-2.5"),
                D("3.14"),
                D("0.1"),
                None,
                D("7"),
                D("3"),
                D("2"),
            ],
            pa.decimal128(38, 18),
        ),
        "t": pa.array([True, False, None, True, False, None, True, True], pa.bool_()),
        "u": pa.array([None] * 8, pa.int64()),
    }
)
TEXTS = pa.table(
    {
        "id": pa.array(range(1, 13), pa.int32()),
        "s": pa.array(
            [
                "abc",
                "ÄÖÜ straße",
                "日本語テキスト",
                "😀 smile",
                "",
                None,
                " 12 ",
                "1.5",
                "2013-01-15 06:07:08.123456",
                "2013-01-15T06:07:08+02:00",
                "1e3",
                "Ab%c_\\d",
            ]
        ),
        "v": pa.array(["b", "ß", "語", "😀", "a", None, "1", ".", "-", "T", "e", "%"]),
        "j": pa.array(
            [
                '{"a":1,"b":[1,2,{"c":"x"}]}',
                '{"a":"t"}',
                "[1,2]",
                "not json",
                "{}",
                None,
                '{"a":null}',
                '{"a":1.50}',
                '{"a":true}',
                '{"a":{"b":2}}',
                '{"a":"ü\\u00e4"}',
                '{"a":12345678901234567890}',
            ]
        ),
    }
)
TIMES = pa.table(
    {
        "id": pa.array(range(1, 9), pa.int32()),
        "t": pa.array(
            [
                us("2013-01-15T06:07:08.123456+00:00"),
                us("1969-12-31T23:59:59.999999+00:00"),
                us("1899-12-31T23:59:59.5+00:00"),
                us("1582-10-10T00:00:00+00:00"),
                None,
                us("9999-12-31T23:59:59.999999+00:00"),
                us("1970-01-01T00:00:00+00:00"),
                us("2024-02-29T12:00:00.000001+00:00"),
            ],
            pa.timestamp("us", "UTC"),
        ),
        "n": pa.array(
            [
                us("2013-01-15T06:07:08.123456"),
                us("1969-12-31T23:59:59.999999"),
                us("1899-12-31T23:59:59.5"),
                us("1582-10-10T00:00:00"),
                None,
                us("9999-12-31T23:59:59.999999"),
                us("1970-01-01T00:00:00"),
                us("2024-02-29T12:00:00.000001"),
            ],
            pa.timestamp("us"),
        ),
        "d": pa.array(
            [
                dt.date(2013, 1, 15),
                dt.date(1969, 12, 31),
                dt.date(1899, 12, 31),
                dt.date(1, 1, 1),
                None,
                dt.date(9999, 12, 31),
                dt.date(1970, 1, 1),
                dt.date(2024, 2, 29),
            ],
            pa.date32(),
        ),
        "e": pa.array(
            [1358230028123, -1, -2208988800500, 0, None, 253402300799999, 1, 1709208000000],
            pa.int64(),
        ),
        "f": pa.array(
            [1358230028.123, -0.001, -2208988800.5, 0.0, None, 1.5, -1.5, 0.1], pa.float64()
        ),
        "z": pa.array(
            [
                "Europe/Berlin",
                "UTC",
                "America/New_York",
                "Asia/Tokyo",
                None,
                "+02:00",
                "UTC",
                "Australia/Lord_Howe",
            ]
        ),
    }
)
NESTED = pa.table(
    {
        "id": pa.array(range(1, 7), pa.int32()),
        "a": pa.array([[3, 1, 2], [], None, [None, 1, None], [5, 5, 1], [7]], pa.list_(pa.int32())),
        "x": pa.array(
            [[nan, -0.0, 1.0], [], None, [None, 1.5], [0.0, -0.0], [7.0]], pa.list_(pa.float64())
        ),
        "c": pa.array([["b", "a"], [], None, [None, "ü"], ["", ""], ["x"]], pa.list_(pa.string())),
        "r": pa.array(
            [
                {"p": 1, "q": "x"},
                {"p": None, "q": "y"},
                None,
                {"p": 2, "q": None},
                {"p": 1, "q": "x"},
                {"p": 0, "q": ""},
            ],
            pa.struct([("p", pa.int64()), ("q", pa.string())]),
        ),
        "m": pa.array(
            [[("k", 1), ("l", 2)], [], None, [("k", None)], [("z", 5)], [("ü", 7)]],
            pa.map_(pa.string(), pa.int32()),
        ),
        "y": pa.array([b"abc", b"", None, b"\xff\x00", b"Spark SQL", b"\xc3\xbc"], pa.binary()),
        "h": pa.array([["a"], ["b"], ["a"], None, ["b"], [None]], pa.list_(pa.string())),
    }
)
TABLES = {"numbers": NUMBERS, "texts": TEXTS, "times": TIMES, "nested": NESTED}


@dataclass(frozen=True)
class Query:
    """What is selected, and from where: `SELECT a, b FROM …`."""

    selected: tuple[str, ...]
    rest: str

    @property
    def text(self) -> str:
        return f"SELECT {', '.join(self.selected)} {self.rest}".strip()

    @classmethod
    def of(cls, text: str) -> Query:
        """A query whose first FROM outside of brackets ends what is selected."""
        tokens = tokenize(text, read="spark")
        depth, cuts, end = 0, [tokens[0].end + 1], len(text)
        for token in tokens[1:]:
            kind = token.token_type.name
            depth += (kind in {"L_PAREN", "L_BRACKET"}) - (kind in {"R_PAREN", "R_BRACKET"})
            if depth == 0 and kind == "COMMA":
                cuts.append(token.end + 1)
            if depth == 0 and kind == "FROM":
                end = token.start
                break
        ends = [*(cut - 1 for cut in cuts[1:]), end]
        selected = (text[a:b].strip() for a, b in zip(cuts, ends, strict=True))
        return cls(tuple(selected), text[end:])


@dataclass(frozen=True)
class Answer:
    """What an engine answers a query.

    Attributes:
        types: of the columns, as `simpleString` names them.
        rows: in an order of their own; a line's values as JSON holds them.
        error: the condition of the failure, where it fails.
    """

    types: list[str] | None = None
    rows: list[Any] | None = None
    error: str | None = None

    def is_that_of(self, other: Answer) -> bool:
        return self.types == other.types and same(self.rows, other.rows)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, but for what floating point loses on the way."""
    if isinstance(one, float) and isinstance(other, float):
        near = math.isclose(one, other, rel_tol=1e-9)
        return near and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def register(
    spark: SparkSession, folder: Path, tables: Mapping[str, pa.Table] = MappingProxyType(TABLES)
) -> None:
    """Make tables known to a session, as files: that is how an engine meets rows."""
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        pq.write_table(table, path)
        spark.read.parquet(path.as_uri()).createOrReplaceTempView(name)


def answer(spark: SparkSession, query: str) -> Answer:
    """What a session answers."""
    try:
        rows = spark.sql(query)
        fields = rows.schema.fields
        values = [
            [encoded(value, field.dataType) for value, field in zip(row, fields, strict=True)]
            for row in rows.collect()
        ]
    except Exception as error:  # noqa: BLE001 - whatever an engine throws is its answer
        condition = getattr(error, "getCondition", lambda: None)()
        return Answer(error=condition or type(error).__name__)
    return Answer([field.dataType.simpleString() for field in fields], sorted(values, key=repr))


Asked = list[tuple[Query, Answer]]
"""Queries, and the answers that are expected."""


def together(queries: Iterable[tuple[Query, Answer]], most: int) -> list[Asked]:
    """Queries that one SELECT may ask: of the same rows, with as many rows in their answers.

    One that is to fail stands alone.
    """
    alike: dict[Any, Asked] = {}
    for query, expected in queries:
        rows = expected.rows
        place = (query.rest, len(rows)) if rows is not None else query
        alike.setdefault(place, []).append((query, expected))
    return [of[at : at + most] for of in alike.values() for at in range(0, len(of), most)]


def answers(spark: SparkSession, some: Asked) -> dict[Query, Answer]:
    """What a session answers queries, asked as one: to plan a query costs more than to compute it.

    Where the one fails they are asked in halves; where an answer is not the expected one, its query
    is asked alone.
    """
    if len(some) == 1:
        return {query: answer(spark, query.text) for query, _ in some}
    columns = tuple(column for query, _ in some for column in query.selected)
    every = answer(spark, Query(columns, some[0][0].rest).text)
    if every.types is None or every.rows is None or len(every.types) != len(columns):
        half = len(some) // 2
        return answers(spark, some[:half]) | answers(spark, some[half:])
    found, at = {}, 0
    for query, expected in some:
        own = slice(at, at + len(query.selected))
        own_rows = sorted((row[own] for row in every.rows), key=repr)
        mine, at = Answer(every.types[own], own_rows), own.stop
        found[query] = mine if mine.is_that_of(expected) else answer(spark, query.text)
    return found


def encoded(value: Any, kind: Any) -> Any:
    """A value as JSON holds it; of a map the entries."""
    from pyspark.sql import types as T

    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(kind, T.ArrayType):
        return [encoded(one, kind.elementType) for one in value]
    if isinstance(kind, T.MapType):
        pairs = value.items()
        return sorted(
            ([encoded(k, kind.keyType), encoded(v, kind.valueType)] for k, v in pairs), key=repr
        )
    if isinstance(kind, T.StructType):
        return [encoded(v, f.dataType) for v, f in zip(value, kind.fields, strict=True)]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dt.datetime):
        is_instant = isinstance(kind, T.TimestampType)
        return (value.astimezone(dt.UTC) if is_instant else value).isoformat()
    return str(value)


def kept() -> Iterator[tuple[Query, Answer]]:
    """The queries, and what Spark answers them."""
    for line in KEPT.read_text(encoding="utf-8").rstrip("\n").split("\n"):
        selected, rest, types, rows, error = json.loads(line)
        yield Query(tuple(selected), rest), Answer(types, rows, error)


def keep(answers: dict[Query, Answer]) -> None:
    """Write the queries and their answers as `kept` reads them."""
    lines = (
        json.dumps([q.selected, q.rest, a.types, a.rows, a.error], ensure_ascii=False)
        for q, a in answers.items()
    )
    KEPT.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
