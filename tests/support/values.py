"""Values of each kind that columns of results may have."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

INFINITY = math.inf
KINDS = {
    "long": (pa.int64(), [0, 1]),
    "double": (pa.float64(), [0.0, -0.0, 5.0, 5.0 * (1 + 1e-12), 5.1, INFINITY, math.nan]),
    "float": (pa.float32(), [0.0, -0.0, 5.0, 5.1, -INFINITY, math.nan]),
    "decimal": (pa.decimal128(9, 2), [Decimal("0.00"), Decimal("-1.50")]),
    "text": (pa.string(), ["", "a", "A"]),
    "flag": (pa.bool_(), [True, False]),
    "raw": (pa.binary(), [b"", b"\x00\xff"]),
    "day": (pa.date32(), [date(1969, 12, 31), date(2024, 3, 1)]),
    "at": (pa.timestamp("us", tz="UTC"), [datetime(2024, 3, 1, 0, 0, 0, 1, tzinfo=UTC)]),
    "list": (pa.list_(pa.string()), [[], ["a"], [None], ["a", "b"]]),
    "struct": (pa.struct([("n", pa.int32()), ("s", pa.string())]), [{"n": 1, "s": None}]),
}
