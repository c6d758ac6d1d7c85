"""Functions that Sail lacks, or computes differently from Spark for any types; see `on_sail`."""

from __future__ import annotations

from strandline.sql.column_types import Problem
from strandline.sql.known_functions import KNOWN

_LACKS = "does not have it"
_LENIENT = "reads other texts"
_WRONG_ADDRESSES = ("takes wrong addresses", "regexp_extract")
TIME_OF_DAY: Problem = ("has a type TIME, which Spark has not", "use the TIMESTAMP itself")

BY_NAME: dict[str, Problem] = {
    "approx_count_distinct": ("estimates differently", "count(DISTINCT x)"),
    "array_contains": ("gives false where Spark gives null", "exists(a, v -> v = x)"),
    "assert_true": ("lets null pass", "CASE WHEN NOT coalesce(x, false) THEN raise_error('…') END"),
    "bround": ("rounds half up", "round(x, n)"),
    "conv": ("has no negative bases", "hex(x), or CAST"),
    "corr": (
        "loses the digits of large numbers",
        "regr_sxy(y, x) / nullif(sqrt(regr_sxx(y, x) * regr_syy(y, x)), 0)",
    ),
    "elt": ("gives null where Spark fails", "CASE i WHEN 1 THEN 'a' … END"),
    "format_number": ("rounds halves differently", "CAST(x AS DECIMAL(38, 2))"),
    "from_csv": ("strips blanks", "split(x, ',')"),
    "get_json_object": ("copies numbers and characters unchanged", "from_json(x, 'field STRING')"),
    "initcap": ("starts words after other characters", "upper and substring"),
    "is_valid_utf8": ("gives false where Spark gives null", "leave it out"),
    "isnan": ("gives null where Spark gives false", "x <=> double('NaN')"),
    "json_array_length": ("counts where Spark gives null", "land it as an array"),
    "map_zip_with": (
        _LACKS,
        "map_from_arrays(map_keys(m), transform(map_keys(m), k -> m[k] + n[k]))",
    ),
    "parse_url": _WRONG_ADDRESSES,
    "percentile_cont": ("interpolates with six digits", "percentile(x, 0.5)"),
    "quote": ("writes some characters differently", "concat"),
    "regexp_instr": ("counts characters differently", "instr(x, text)"),
    "regr_r2": (
        "gives null where all y are equal",
        "CASE WHEN regr_syy(y, x) = 0 AND regr_sxx(y, x) > 0 THEN 1D ELSE "
        "power(regr_sxy(y, x), 2) / nullif(regr_sxx(y, x) * regr_syy(y, x), 0) END",
    ),
    "rint": ("rounds half up", "round(x)"),
    "sentences": ("knows other words", "split(x, ' ')"),
    "slice": ("takes what there is where Spark takes nothing", "filter(a, (v, i) -> i < n)"),
    "time_bucket": (_LACKS, "date_trunc('hour', t)"),
    "to_json": ("writes numbers and times differently", "concat_ws, or keep the struct"),
    "to_varchar": ("is not compared by this name", "to_char(x, '999')"),
    "transform_keys": (
        _LACKS,
        "map_from_arrays(transform(map_keys(m), k -> upper(k)), map_values(m))",
    ),
    "transform_values": (
        _LACKS,
        "map_from_arrays(map_keys(m), transform(map_values(m), v -> v + 1))",
    ),
    "try_avg": ("gives another type", "avg(x)"),
    "try_parse_url": _WRONG_ADDRESSES,
    "try_to_date": (_LACKS, "TRY_CAST(s AS DATE)"),
    "unbase64": (_LENIENT, "land it as BINARY"),
    "vector_norm": (_LACKS, "sqrt(aggregate(a, 0D, (s, v) -> s + v * v))"),
    "vector_normalize": (_LACKS, "transform(a, v -> v / 5D)"),
    "weekday": ("is -1 on some days before 1970", "dayofweek(t)"),
    "zip_with": (_LACKS, "transform(arrays_zip(a, b), v -> v.a + v.b)"),
    **dict.fromkeys(("to_binary", "try_to_binary"), (_LENIENT, "encode(s, 'UTF-8'), or unhex(s)")),
    **dict.fromkeys(
        (
            *("parse_json", "schema_of_variant", "schema_of_variant_agg", "to_variant_object"),
            *("try_parse_json", "try_variant_get", "variant_get"),
        ),
        ("keeps numbers of VARIANT differently", "read it with from_json(x, 'field STRING')"),
    ),
    **dict.fromkeys(
        (
            *("make_time", "time_diff", "time_from_micros", "time_from_millis"),
            *("time_from_seconds", "time_to_micros", "time_to_millis", "time_to_seconds"),
            *("time_trunc", "to_time", "try_to_time"),
        ),
        TIME_OF_DAY,
    ),
}
"""Functions with a different result: the difference, and what to write instead."""
_FAMILIES = (
    *("aes_", "approx_top_k", "bitmap_and", "bitmap_con", "bitmap_or", "hll_", "kll_", "st_"),
    *("theta_", "try_aes_", "tuple_", "vector_", "xpath"),
)
_ALONE = {
    *("collate", "collation", "from_avro", "from_protobuf", "from_xml", "is_valid_variant"),
    *("is_variant_null", "make_valid_utf8", "make_ym_interval", "schema_of_avro", "schema_of_csv"),
    *("schema_of_xml", "to_avro", "to_csv", "to_protobuf", "to_xml", "try_make_interval"),
    "window_time",
}


def is_compared(name: str) -> bool:
    """Whether Sail's answers of a known function are compared with Spark's, over records.

    Test: `test_sail_answers_as_spark_does_or_fails_or_is_refused_by_name`
    """
    return name in KNOWN and name not in _ALONE and not name.startswith(_FAMILIES)
