"""Functions that Sail lacks, or not for all types and values; see `on_sail`, `types_on_sail`."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.sql.column_types import FLOATS, WHOLE, Problem
from strandline.sql.functions_for_sail import are_tried, is_decoded, widest
from strandline.sql.known_functions import KNOWN
from strandline.sql.operations import Operation

_LACKS = "does not have it"

MISSING: dict[str, Problem] = {
    **dict.fromkeys(("collation", "is_valid_variant"), (_LACKS, "leave it out")),
    "map_zip_with": (
        _LACKS,
        "map_from_arrays(map_keys(m), transform(map_keys(m), k -> m[k] + n[k]))",
    ),
    "schema_of_xml": (_LACKS, "the schema itself"),
    "time_bucket": (_LACKS, "date_trunc('hour', t)"),
    "transform_keys": (
        _LACKS,
        "map_from_arrays(transform(map_keys(m), k -> upper(k)), map_values(m))",
    ),
    "transform_values": (
        _LACKS,
        "map_from_arrays(map_keys(m), transform(map_values(m), v -> v + 1))",
    ),
    "to_varchar": ("is not compared by this name", "to_char(x, '999')"),
    "try_to_date": (_LACKS, "CAST(try_to_timestamp(s) AS DATE)"),
    "vector_norm": (_LACKS, "sqrt(aggregate(a, 0D, (s, v) -> s + v * v))"),
    "vector_normalize": (_LACKS, "transform(a, v -> v / 5D)"),
    "zip_with": (_LACKS, "transform(arrays_zip(a, b), v -> v.a + v.b)"),
    **dict.fromkeys(("st_setsrid", "st_srid"), (_LACKS, "numbers of their own")),
}
"""Functions that Sail does not have, and what to write instead."""
_FAMILIES = (
    *("aes_", "approx_top_k", "bitmap_and", "bitmap_con", "bitmap_or", "hll_", "kll_", "st_"),
    *("theta_", "try_aes_", "tuple_", "vector_", "xpath"),
)
_ALONE = {
    *("collate", "from_avro", "from_protobuf", "from_xml", "is_variant_null", "make_valid_utf8"),
    *("make_ym_interval", "schema_of_avro", "schema_of_csv", "to_avro", "to_csv", "to_protobuf"),
    *("to_xml", "try_make_interval", "window_time"),
}


def is_compared(name: str) -> bool:
    """Whether Sail's answers of a known function are compared with Spark's, over records.

    Test: `test_sail_answers_as_spark_does_or_fails_or_is_refused_by_name`
    """
    return name in KNOWN and name not in _ALONE and not name.startswith(_FAMILIES)


def not_for_these_types(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`try_add` and the like, which Sail has for some types."""
    if len(types) != 2 or are_tried(operation.name, types):
        return None
    return "does not have it for these types", "CAST(x AS DOUBLE) for both"


def decoded(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`decode` with values and results; with two arguments it reads BINARY."""
    if len(types) < 3 or is_decoded(types):
        return None
    return "decodes BINARY only", "CASE WHEN x = 1 THEN … END"


def unless_null(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`nvl2`, which Sail has for results of one type."""
    if len(types) != 3 or widest(types[1:]) is not None:
        return None
    return "takes the type of the first result", "CAST for both results"


def zero_for_null(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`zeroifnull`, which has the type of its operand on Sail."""
    if {*types} <= {*WHOLE, *FLOATS}:
        return None
    return "gives another type", "coalesce(x, y) of one type"


def part_of_text(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`substr(s, n, m)` but for a written position from the left, and a written length."""
    if len(types) != 3:
        return None
    literals = [one.literal for one in operation.operands[1:]]
    if all(one is not None and not one.startswith("-") for one in literals):
        return None
    return (
        "takes other parts at a computed position or from the right",
        "left(substr(s, n), m) for n > 0",
    )


def without_nulls(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`array_except` of one array that is written out, and so holds no nulls, and another one."""
    written = {(one.text or "").lower().startswith("array(") for one in operation.operands}
    if len(written) > 1:
        return (
            "refuses an array that is written out",
            "array_distinct(filter(a, v -> v IS NULL OR v NOT IN (1, 2)))",
        )
    return None


def joined(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`array_join(a, ',', s)` with a replacement of nulls that may itself be null."""
    if len(types) == 3 and (operation.operands[2].literal or "NULL").upper() == "NULL":
        return "joins where Spark gives null", "array_join(a, ',', 'text')"
    return None
