"""The expressions of a pipeline are judged without a session: by what the records alone decide."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from strandline.errors import InputError
from strandline.spec import parse_spec
from strandline.spec.expressions import (
    left_to_the_engine,
    problems_of,
    problems_of_aggregate,
    problems_of_record,
    refuse_if_any,
)
from strandline.spec.used_expressions import uses_of
from strandline.sql.column_types import misfit, missing

PLACE = {"type": "struct", "fields": [{"name": "City", "type": "string"}]}
COLUMNS: dict[str, Any] = {
    "landed_at": "timestamp",
    "happened_at": "timestampNtz",
    "day": "date",
    "text": "string",
    "ms": "long",
    "amount": "double",
    "digits": "decimal(38,0)",
    "cents": "decimal(10,2)",
    "good": "boolean",
    "place": PLACE,
    "places": {"type": "array", "elementType": PLACE, "containsNull": True},
    "tags": {"type": "map", "keyType": "string", "valueType": "string"},
    "odd name": "string",
}


def of_record(text: str, wanted: str = "any", columns: Any = COLUMNS) -> list[str]:
    return ["; ".join(problem) for problem in problems_of_record(text, wanted, columns)]


def of_aggregate(text: str, columns: Any = COLUMNS) -> list[str]:
    return ["; ".join(problem) for problem in problems_of_aggregate(text, columns)]


# ------------------------------------------------------------------------------ columns and types


@pytest.mark.parametrize(
    "text",
    [
        "amount",
        "AMOUNT + Ms",
        "odd name",
        "`odd name`",
        "place.city",
        "places.city",
        "places[0].city",
        "tags.anything",
        "transform(places, p -> p.city)",
        "upper(place.CITY)",
    ],
)
def test_columns_are_found_as_spark_finds_them(text):
    assert of_record(text) == []


@pytest.mark.parametrize(
    ("text", "problem", "way_out"),
    [
        (
            "amuont",
            "there is no column amuont",
            "perhaps amount; its columns are landed_at, happened_at",
        ),
        ("upper(txt)", "there is no column txt", "perhaps text; its columns are "),
        ("zzz > 1", "there is no column zzz", "its columns are landed_at, "),
        ("place.town", "place is STRUCT and has no field town", "its fields are City"),
        ("place.citty", "place is STRUCT and has no field citty", "perhaps City"),
        ("ms.x", "ms is BIGINT and has no field x", "it has no fields"),
        ("transform(places, p -> p.city + amuont)", "there is no column amuont", "perhaps amount"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_the_nearest_ones(text, problem, way_out):
    (said,) = of_record(text)
    assert problem in said
    assert way_out in said
    assert repr(text) in said


def test_every_column_that_is_not_there_is_named():
    assert len(of_record("amuont + txt")) == 2
    assert len(of_aggregate("sum(amuont) / max(txt)")) == 2
    assert of_record("amuont + txt", columns=None) == []


@pytest.mark.parametrize(
    ("text", "wanted", "problem"),
    [
        (
            "ms",
            "time",
            "'ms' is BIGINT, which is not a time; give an expression such as timestamp_",
        ),
        ("`ms`", "time", "is BIGINT, which is not a time"),
        ("place", "time", "is STRUCT, which is not a time"),
        ("CAST(text AS BIGINT)", "time", "is BIGINT, which is not a time"),
        ("ms > 1", "time", "is BOOLEAN, which is not a time"),
        ("amount", "condition", "gives double; give a boolean expression"),
        ("'yes'", "condition", "gives string; give a boolean expression"),
        ("amount", "sequence", "is DOUBLE; give a whole number, cast to BIGINT"),
        ("cents", "sequence", "is DECIMAL(10,2); give a whole number"),
        ("text", "gap", "is STRING; give a whole number of milliseconds"),
        ("text", "number", "is STRING; give a number"),
        ("ms", "date", "is BIGINT; give a date column"),
    ],
)
def test_a_type_that_does_not_belong_there_is_refused_with_the_way_out(text, wanted, problem):
    (said,) = of_record(text, wanted)
    assert problem in said


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("landed_at", "time"),
        ("happened_at", "time"),
        ("day", "time"),
        ("text", "time"),
        ("timestamp_millis(ms)", "time"),
        ("text::timestamp", "time"),
        ("good", "condition"),
        ("amount > 1", "condition"),
        ("ms", "sequence"),
        ("digits", "sequence"),
        ("CAST(cents AS DECIMAL(10, 0))", "sequence"),
        ("ms", "gap"),
        ("cents", "number"),
        ("landed_at", "date"),
        ("place", "any"),
    ],
)
def test_a_type_that_belongs_there_is_taken(text, wanted):
    assert of_record(text, wanted) == []


def test_a_column_of_a_type_that_nobody_knows_is_left_to_the_engine():
    assert of_record("a", "time", {"a": None}) == of_record("a.b.c", "time", {"a": None}) == []
    assert missing(("a", "b"), {"a": "variant"}) is None
    assert misfit("any", "x", "whatever") is None


# ---------------------------------------------------------------- what the record does not decide

BY_CHANCE = [
    "rand()", "randn(7)", "uuid()", "random()", "randstr(3)", "uniform(1, 2)", "builtin.rand()",
    "concat(text, uuid())", "shuffle(places)", "monotonically_increasing_id()",
    "spark_partition_id()", "input_file_name()", "input_file_block_start()",
    "java_method('java.util.UUID', 'randomUUID')", "reflect('a', 'b')", "try_reflect('a', 'b')",
    "aes_encrypt(text, 'k')",
]  # fmt: skip
BY_CLOCK = [
    "now()", "current_timestamp()", "current_timestamp", "CURRENT_DATE", "current_date()",
    "curdate()", "current_time()", "localtimestamp", "localtimestamp()", "unix_timestamp()",
    "TIMESTAMP'now'", "DATE'today'", "date_sub(current_date, 1)",
]  # fmt: skip
BY_SESSION = ["current_user()", "session_user", "user()", "version()", "current_database()"]


@pytest.mark.parametrize("text", [*BY_CHANCE, *BY_CLOCK])
def test_chance_and_the_clock_are_refused_of_a_record_and_of_an_aggregate(text):
    for said in (of_record(text), of_aggregate(f"max({text})")):
        assert len(said) == 1
        assert "is not deterministic (" in said[0]
        assert said[0].endswith("a rerun would differ; compute from the record's own columns")


@pytest.mark.parametrize("text", BY_SESSION)
def test_who_runs_it_must_not_matter(text):
    for said in (of_record(text), of_aggregate(f"max({text})")):
        assert len(said) == 1
        assert "depends on who runs it, and where" in said[0]


@pytest.mark.parametrize("text", ["user", "current_date", "max(localtimestamp)"])
def test_a_name_without_parentheses_is_a_column_where_there_is_one(text):
    columns = {"User": "string", "current_date": "date", "localtimestamp": "timestamp"}
    judge = of_aggregate if text.startswith("max") else of_record
    assert judge(text, columns=columns) == []
    assert judge(text, columns=None) == []
    assert judge(text, columns={"a": "string"}) != []


@pytest.mark.parametrize(
    "text",
    [
        "unix_timestamp(text)",
        "to_timestamp(text)",
        "TIMESTAMP'2024-01-01'",
        "CAST('now' AS STRING)",
        "aes_encrypt(text, 'k', 'ECB')",
    ],
)
def test_what_only_looks_like_chance_or_the_clock_is_taken(text):
    assert of_record(text) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sum(amount)", "is an aggregate (sum())"),
        ("amount - max(amount)", "is an aggregate (max())"),
        ("sum(amount) OVER (PARTITION BY text)", "is an aggregate (sum())"),
        ("row_number() OVER (ORDER BY ms)", "looks at other records (OVER)"),
        ("lag(ms)", "looks at other records (OVER)"),
        ("explode(places)", "does not give one value for each record (explode())"),
        ("window(landed_at, '1 hour').start", "does not give one value for each record (window())"),
        ("json_tuple(text, 'a')", "does not give one value"),
        ("(SELECT max(x) FROM other)", "asks other tables (SELECT)"),
        ("ms IN (SELECT x FROM other)", "asks other tables (SELECT)"),
        ("upper(text", "is no expression (( is not closed)"),
    ],
)
def test_an_expression_of_a_record_is_of_that_record_alone(text, problem):
    (said,) = of_record(text)
    assert problem in said
    assert repr(text) in said


# ------------------------------------------------------------------------------------- aggregates


@pytest.mark.parametrize(
    "text",
    [
        "count(*)",
        "sum(amount) / count(*)",
        "count(DISTINCT text, ms)",
        "sum(amount) FILTER (WHERE good)",
        "array_sort(collect_list(amount))",
        "max_by(text, landed_at)",
        "try_avg(amount) + 1",
        "size(array_sort(collect_set(text)))",
        "approx_count_distinct(ms)",
        "theta_sketch_estimate(theta_sketch_agg(ms))",
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY amount DESC)",
        "transform(array_sort(collect_list(ms)), x -> x + 1)",
        "my_sum(amount)",
        "my_scale(amount, 3)",
        "count(*) AS n",
    ],
)
def test_what_the_records_alone_decide_is_an_aggregate(text):
    assert of_aggregate(text) == []


@pytest.mark.parametrize(
    ("text", "problem", "way_out"),
    [
        ("amount", "amount is of a single record", "say of which, such as max(amount)"),
        ("sum(amount) / ms", "ms is of a single record", "max(ms)"),
        ("max(amount) OVER ()", "it looks at other rows: OVER", "leave OVER out"),
        ("rank()", "it looks at other rows: OVER", "leave OVER out"),
        ("max(sum(amount))", "sum() stands inside max()", "keep one of both"),
        ("max(amount) FILTER (WHERE sum(ms) > 1)", "sum() stands inside max()", "keep one of both"),
        ("explode(array_sort(collect_list(ms)))", "explode() gives several rows", "one value"),
        ("1 + 1", "it calls none", "see Spark SQL's functions"),
        ("upper('x')", "it calls none", "see Spark SQL's functions"),
    ],
)
def test_what_is_no_aggregate_is_refused_with_the_way_out(text, problem, way_out):
    (said,) = of_aggregate(text)
    assert f"{text!r} is not an aggregate ({problem})" in said
    assert way_out in said


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("first(amount)", "min_by(x, arrival)"),
        ("last_value(amount) IGNORE NULLS", "max_by(x, arrival)"),
        ("collect_set(text)", "array_sort(collect_set(x))"),
        ("string_agg(text, ',')", "listagg(x) WITHIN GROUP (ORDER BY x)"),
        ("mode(text)", "mode() WITHIN GROUP (ORDER BY x)"),
        ("approx_percentile(amount, 0.5)", "percentile(x, 0.5)"),
        ("hll_sketch_estimate(hll_sketch_agg(ms))", "approx_count_distinct(x)"),
        ("kll_sketch_agg_bigint(ms)", "percentile(x, 0.5)"),
        ("approx_top_k(text)", "count(*) in windows that have the value in their key"),
    ],
)
def test_what_depends_on_the_order_of_the_records_is_refused_with_the_way_out(text, way_out):
    (said,) = of_aggregate(text)
    assert "depends on the order of the records" in said
    assert way_out in said


# ------------------------------------------------------------------------------ a whole pipeline

CONTENT: dict[str, Any] = {
    "pipeline": "p",
    "source": {
        "table": "landing/t",
        "arrival_date": "day",
        "arrival_time": "landed_at",
        "event_time": "happened_at",
        "channel": "text",
        "channels": "discovered",
        "key": {"city": "place.city"},
        "sequence": "ms",
        "id": ["ms"],
        "where": "good",
        "valid": "amount > 0",
        "deduplicate": {"columns": ["ms"], "within": "1d of arrival"},
    },
    "watermark": {"strategy": "punctuated", "marker": "good"},
    "window": {"global": {}},
    "trigger": {"delta": 1.0, "of": "amount"},
    "evictor": {"delta": 1.0, "of": "amount"},
    "firings": True,
    "aggregates": {"n": "count(*)"},
}


def a_spec(**changes: Any):
    content = copy.deepcopy(CONTENT)
    for path, value in changes.items():
        *above, name = path.split("__")
        part = content
        for step in above:
            part = part[step]
        part[name] = value
    return parse_spec(content, origin="p.yaml")


def problems(spec, tables=None) -> list[str]:
    return [str(one) for one in problems_of(spec, tables or {"": COLUMNS}, "p.yaml")]


def test_a_pipeline_whose_expressions_are_right_has_no_problems():
    assert problems(a_spec()) == []
    assert len([*uses_of(a_spec())]) == 14


BROKEN = {
    "source__arrival_date": "dya",
    "source__arrival_time": "ms",
    "source__event_time": "current_timestamp()",
    "source__channel": "explode(tags)",
    "source__key": {"city": "place.town"},
    "source__sequence": "rand()",
    "source__id": ["MS"],
    "source__where": "amount",
    "source__valid": "count(*) > 1",
    "source__deduplicate": {"columns": ["nope"], "within": "1d of arrival"},
    "watermark__marker": "amuont > 1",
    "trigger__of": "text",
    "evictor__of": "uuid()",
    "aggregates__n": "first(amount)",
}


@pytest.mark.parametrize(("path", "value"), BROKEN.items())
def test_every_expression_of_a_pipeline_is_checked(path, value):
    place = {"source__deduplicate": "source.deduplicate.columns", "source__key": "source.key.city"}
    (said,) = problems(a_spec(**{path: value}))
    assert said.startswith(f"p.yaml: {place.get(path, path.replace('__', '.'))}: ")


def test_a_column_with_a_reserved_name_is_found_without_an_engine():
    (said,) = problems(a_spec(), {"": {**COLUMNS, "_Strandline_ts_ms": "long"}})
    assert said == (
        "p.yaml: source.table: its column '_Strandline_ts_ms' has a reserved name; rename it there"
    )
    tables = {"left": COLUMNS, "right": {**COLUMNS, "_strandline_x": "long"}}
    (of_join,) = problems_of(a_join({"interval": ["-5m", "5m"]}), tables, "j.yaml")
    assert of_join.place == "j.yaml: sources.right.table"


def test_all_problems_of_a_pipeline_are_found_at_once_in_the_order_of_its_file():
    spec = a_spec(**BROKEN)
    found = problems(spec)
    assert len(found) == len(BROKEN)
    assert found[0].startswith("p.yaml: source.arrival_date")
    assert found[-1].startswith("p.yaml: aggregates.n")
    with pytest.raises(InputError) as refused:
        refuse_if_any(problems_of(spec, {"": COLUMNS}, "p.yaml"), "p.yaml")
    head, *lines = str(refused.value).splitlines()
    assert head == f"p.yaml: {len(BROKEN)} mistakes in its expressions"
    assert [line.strip() for line in lines] == found


def test_without_a_table_only_what_needs_none_is_checked():
    found = problems(a_spec(**BROKEN), {"": None})
    assert {line.split(": ")[1] for line in found} == {
        "source.event_time", "source.channel", "source.sequence", "source.valid", "evictor.of",
        "aggregates.n",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("watermark", "place"),
    [
        ({"strategy": "expression", "candidate": "ms"}, "watermark.candidate"),
        ({"strategy": "punctuated", "marker": "ms"}, "watermark.marker"),
    ],
)
def test_the_expressions_of_a_watermark_are_checked(watermark, place):
    (said,) = problems(a_spec(watermark=watermark))
    assert f"p.yaml: {place}: " in said


def test_an_event_time_that_is_not_read_is_not_checked():
    watermark = {"strategy": "ingestion"}
    assert problems(a_spec(watermark=watermark, source__event_time="nope")) == []


def test_the_gap_of_a_session_is_checked():
    content = copy.deepcopy(CONTENT) | {"window": {"session": "text"}}
    for name in ("trigger", "evictor", "firings"):
        content.pop(name)
    spec = parse_spec(content, origin="p.yaml")
    assert problems(spec) == [
        "p.yaml: window.session: is STRING; give a whole number of milliseconds"
    ]


def test_what_nobody_knows_is_left_to_the_engine_by_its_place():
    spec = a_spec(
        source__valid="my_check(amount)", source__where="ms >>> 1 = 0", aggregates__n="cat.s.f(ms)"
    )
    assert problems(spec) == []
    said = {use.place: why for use, why in left_to_the_engine(spec, {"": COLUMNS})}
    assert said == {
        "source.where": "'ms >>> 1 = 0' is not understood here (it cannot be parsed from '>' on)",
        "source.valid": "my_check() is none of Spark's own functions that are known here",
        "aggregates.n": "cat.s.f() is none of Spark's own functions that are known here",
    }


# ----------------------------------------------------------------- two sources, and other results

SIDE = {
    "table": "landing/t",
    "arrival_time": "landed_at",
    "event_time": "happened_at",
    "key": ["text"],
    "watermark": {"strategy": "ascending"},
}
OTHER = {"landed_at": "timestamp", "happened_at": "timestamp", "text": "string", "size": "long"}


def a_join(join: dict[str, Any], **more: Any):
    content = {"pipeline": "j", "sources": {"left": SIDE, "right": SIDE}, "join": join, **more}
    return parse_spec(copy.deepcopy(content), origin="j.yaml")


def test_each_side_of_a_join_is_held_against_its_own_table():
    spec = a_join({"interval": ["-5m", "5m"]})
    tables = {"left": COLUMNS, "right": {"landed_at": "timestamp", "text": "string"}}
    (said,) = problems_of(spec, tables, "j.yaml")
    assert said.place == "j.yaml: sources.right.event_time"


def of_both_tables(join, right, **more):
    tables = {"left": OTHER, "right": right, "both": {**OTHER, **right}, "pairs": {}}
    return [str(one) for one in problems_of(a_join(join, **more), tables, "j.yaml")]


def test_one_column_of_both_sides_in_two_spellings_is_found_without_an_engine():
    right = {"Size": "long", **OTHER}
    del right["size"]
    assert of_both_tables({"interval": ["-5m", "5m"]}, right) == [
        "j.yaml: sources.right.table: its column Size (bigint) differs from size (bigint) of the "
        "left source in case or type; give both one name and type, or two names"
    ]
    assert of_both_tables({"interval": ["-5m", "5m"]}, {**OTHER, "INPUT": "string"}) == [
        "j.yaml: sources.right.table: its column INPUT has the name of a column that Strandline "
        "adds; rename it there"
    ]


def test_two_types_of_one_column_are_wrong_only_where_a_join_reads_them_as_one():
    right, windows = {**OTHER, "size": "double"}, {"window": {"tumbling": "1h"}}
    read = {"aggregates": {"n": "sum(size)"}, **windows}
    assert of_both_tables({"cogroup": {}}, right, aggregates={"n": "count(*)"}, **windows) == []
    assert of_both_tables({"cogroup": {}}, right, **read) == [
        "j.yaml: sources.right.table: its column size (double) differs from size (bigint) of the "
        "left source in case or type; give both one name and type, or two names"
    ]
    nested = {**OTHER, "size": {"type": "array", "elementType": "long"}}
    assert not any("differs" in one for one in of_both_tables({"cogroup": {}}, nested, **read))


def test_the_aggregates_of_a_join_are_over_both_tables_or_over_pairs():
    more = {"window": {"tumbling": "1h"}, "aggregates": {"n": "sum(amount) + sum(size)"}}
    tables = {
        "left": COLUMNS, "right": OTHER, "both": {**COLUMNS, **OTHER},
        "pairs": {"left_amount": "double", "right_size": "long"},
    }  # fmt: skip
    assert problems_of(a_join({"cogroup": {}}, **more), tables, "j.yaml") == []
    of_pairs = problems_of(a_join({"window": {}}, **more), tables, "j.yaml")
    assert [one.place for one in of_pairs] == ["j.yaml: aggregates.n"] * 2
    assert "perhaps left_amount" in of_pairs[0].way_out
    more["aggregates"] = {"n": "sum(left_amount) + sum(right_size)"}
    assert problems_of(a_join({"window": {}}, **more), tables, "j.yaml") == []


def test_an_error_of_a_single_problem_is_that_problem():
    problem = InputError("p.yaml: a", "wrong", "mend it")
    with pytest.raises(InputError) as refused:
        refuse_if_any([problem], "p.yaml")
    assert refused.value is problem
    refuse_if_any([], "p.yaml")


def test_what_filters_records_goes_by_its_place_and_not_by_the_name_of_an_aggregate_or_a_key():
    source = {"source__key": {"valid": "device"}, "source__sequence": "position"}
    spec = a_spec(**source, aggregates={"where": "count(*)"})
    filters = {use.place for use in uses_of(spec) if use.filters}
    assert {"source.channel", "source.key.valid", "source.event_time"} <= filters
    assert "source.sequence" in filters  # it is a part of the instant
    assert "aggregates.where" not in filters
