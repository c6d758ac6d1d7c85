"""Columns that are about to be published, held against their table; without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema
from pyspark.sql import types as T

from strandline.errors import InputError
from strandline.lake.publish.apply_diff import create, fit_into
from strandline.lake.publish.arrow_diff import OP
from strandline.lake.store.identities import marked, nulls_counted
from strandline.lake.store.lake import Lake
from strandline.lake.store.schema import fit, schema_of, with_marks
from strandline.lake.store.second_columns import SECOND_OF, second_columns
from strandline.spec.pipeline import OWN_PREFIX
from strandline.tables import QUARANTINE, windows_table

INT, LONG, TEXT = T.IntegerType(), T.LongType(), T.StringType()


def columns(**kinds: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])


def held(staged: T.DataType, published: T.DataType) -> tuple[str, bool]:
    """The type that the table gets, and whether it has to be widened for that."""
    found = fit(columns(total=staged), columns(total=published), "meter: windows")
    return found.schema["total"].dataType.simpleString(), bool(found.widened)


@pytest.mark.parametrize(
    ("staged", "published", "kept", "widened"),
    [
        (INT, INT, "int", False),
        (LONG, INT, "bigint", True),
        (INT, LONG, "bigint", False),
        (T.ByteType(), T.ShortType(), "smallint", False),
        (T.DoubleType(), T.FloatType(), "double", True),
        (T.FloatType(), T.DoubleType(), "double", False),
        (T.DecimalType(20, 2), T.DecimalType(10, 2), "decimal(20,2)", True),
        (T.DecimalType(10, 2), T.DecimalType(20, 2), "decimal(20,2)", False),
        (T.DecimalType(10, 4), T.DecimalType(10, 2), "decimal(12,4)", True),
        (T.ArrayType(LONG), T.ArrayType(INT), "array<bigint>", True),
        (T.MapType(TEXT, LONG), T.MapType(TEXT, INT), "map<string,bigint>", True),
        (columns(a=LONG, c=TEXT), columns(A=INT, b=INT), "struct<A:bigint,b:int,c:string>", True),
        (columns(a=INT), columns(a=INT, b=TEXT), "struct<a:int,b:string>", False),
    ],
)  # fmt: skip
def test_a_type_may_grow_on_either_side(staged, published, kept, widened):
    assert held(staged, published) == (kept, widened)


@pytest.mark.parametrize(
    ("staged", "published"),
    [
        (T.DoubleType(), LONG),
        (LONG, T.DoubleType()),
        (T.DecimalType(38, 0), T.DecimalType(10, 2)),
        (T.DecimalType(20, 0), LONG),
        (TEXT, INT),
        (T.DateType(), T.TimestampType()),
        (T.TimestampNTZType(), T.TimestampType()),
        (T.MapType(LONG, TEXT), T.MapType(INT, TEXT)),
        (T.ArrayType(TEXT), T.ArrayType(INT)),
        (columns(a=TEXT), columns(a=INT)),
        (T.ArrayType(INT), INT),
    ],
)
def test_any_other_change_is_refused_with_both_types_and_the_way_out(staged, published):
    with pytest.raises(InputError) as refused:
        held(staged, published)
    said = str(refused.value)
    assert said.startswith("meter: windows: column total is ")
    assert staged.simpleString() in said
    assert published.simpleString() in said
    way_out = f"cast aggregates.total to {published.simpleString()}, or give it another name"
    assert f"in the pipeline file {way_out}" in said


def test_names_are_compared_without_case_and_the_table_keeps_its_own():
    found = fit(columns(Total=INT, Mean=INT), columns(total=INT), "p")
    assert found.schema.names == ["total", "Mean"]
    assert found.names == {"Total": "total", "Mean": "Mean"}
    assert (found.new, found.widened) == (("Mean",), ())


def test_a_column_that_is_staged_no_more_stays_as_it_is():
    found = fit(columns(a=INT), columns(a=INT, b=TEXT), "p")
    assert found.schema.names == ["a", "b"]
    assert (found.new, found.widened) == ((), ())


def test_a_table_is_held_by_the_names_and_types_that_its_log_has(tmp_path):
    store = Lake.at(str(tmp_path)).pipeline("meter")
    target = windows_table(["device"])
    staged = columns(window_date=T.DateType(), device=TEXT, total=INT)
    create(store, target, staged)
    before, table = store.versions(), store.table("windows")
    assert fit_into(table, target, columns(total=LONG), "meter").widened == ("total",)
    with pytest.raises(InputError, match="meter: windows: column Total is double, but published"):
        fit_into(table, target, columns(Total=T.DoubleType()), "meter")
    assert store.versions() == before


EVERY_KIND = (
    T.ByteType(), T.ShortType(), INT, LONG, T.FloatType(), T.DoubleType(), T.DecimalType(38, 10),
    TEXT, T.BinaryType(), T.BooleanType(), T.DateType(), T.TimestampType(), T.TimestampNTZType(),
    T.ArrayType(columns(a=INT, b=T.MapType(TEXT, LONG))),
)  # fmt: skip


def test_columns_of_every_kind_and_name_are_created_as_they_are_and_without_their_metadata(
    tmp_path,
):
    names = ["`a`", "a.b", "it's", 'say "x"', "é", "a-b", "%", "$x", "/", "#", "ä?", "n", "N0", "z"]
    fields = [
        T.StructField(name, kind, metadata={"comment": "of the source"})
        for name, kind in zip(names, EVERY_KIND, strict=True)
    ]
    store = Lake.at(str(tmp_path)).pipeline("meter")
    day = T.StructField("window_date", T.DateType())
    create(store, windows_table([]), T.StructType([*fields, day]))
    found = schema_of(store.table("windows"))
    assert [(f.name, f.dataType) for f in found][:-1] == [(f.name, f.dataType) for f in fields]
    assert not any(field.metadata for field in found)


# --------------------------------------------------------------------------------- source columns


def source_column(staged: T.DataType, published: T.DataType) -> tuple[str, str]:
    """The column of quarantine that a landing column gets, and its type."""
    found = fit(columns(amount=staged), columns(amount=published), "p", QUARANTINE)
    name = found.names["amount"]
    return name, found.schema[name].dataType.simpleString()


@pytest.mark.parametrize(
    ("staged", "published", "name", "kept"),
    [
        (LONG, INT, "amount", "bigint"),
        (T.DoubleType(), INT, "amount", "double"),
        (INT, T.DoubleType(), "amount", "double"),
        (T.DecimalType(20, 0), LONG, "amount", "decimal(20,0)"),
        (T.DecimalType(12, 2), INT, "amount", "decimal(12,2)"),
        (columns(a=T.DoubleType(), b=TEXT), columns(a=INT), "amount", "struct<a:double,b:string>"),
        (columns(b=INT), columns(a=INT, b=INT), "amount", "struct<a:int,b:int>"),
        (T.ArrayType(T.DoubleType()), T.ArrayType(INT), "amount", "array<double>"),
        # what would lose something has a column of its own
        (T.DoubleType(), LONG, "amount__double", "double"),
        (LONG, T.DoubleType(), "amount__bigint", "bigint"),
        (TEXT, INT, "amount__string", "string"),
        (INT, TEXT, "amount__int", "int"),
        (T.DecimalType(38, 2), LONG, "amount", "decimal(38,2)"),
        (T.DecimalType(38, 20), LONG, "amount__decimal_38_20", "decimal(38,20)"),
        (T.TimestampType(), T.DateType(), "amount__timestamp", "timestamp"),
        (columns(a=TEXT), columns(a=INT), "amount__struct", "struct<a:string>"),
        (T.ArrayType(TEXT), T.ArrayType(INT), "amount__array", "array<string>"),
        (T.MapType(LONG, INT), T.MapType(TEXT, INT), "amount__map", "map<bigint,int>"),
        (INT, T.ArrayType(INT), "amount__int", "int"),
    ],
)  # fmt: skip
def test_a_source_column_grows_where_nothing_is_lost_and_else_has_a_second_one(
    staged, published, name, kept
):
    assert source_column(staged, published) == (name, kept)


def test_second_columns_are_known_by_their_mark_and_take_no_name_in_use(tmp_path):
    store = Lake.at(str(tmp_path)).pipeline("meter")
    day = {"quarantine_date": T.DateType()}

    def names(**kinds: T.DataType) -> dict[str, str]:
        staged = columns(**kinds, **day)
        create(store, QUARANTINE, staged)
        found = fit_into(store.table("quarantine"), QUARANTINE, staged, "meter")
        assert not found.widened
        return {name: column for name, column in found.names.items() if name not in day}

    assert names(amount=LONG) == {"amount": "amount"}
    assert names(amount=T.DoubleType()) == {"amount": "amount__double"}
    assert names(amount=T.DoubleType()) == {"amount": "amount__double"}
    assert names(amount=TEXT) == {"amount": "amount__string"}
    assert names(amount=LONG) == {"amount": "amount"}
    # of structs there may be several; and a landing column may have such a name, too
    assert names(amount=columns(a=INT)) == {"amount": "amount__struct"}
    assert names(amount=columns(a=TEXT)) == {"amount": "amount__struct_2"}
    taken = {"amount": T.DateType(), "amount__date": TEXT}
    assert names(**taken) == {"amount": "amount__date_2", "amount__date": "amount__date"}
    # which never shares the second column of another one
    before_amount = {"amount__double": T.DoubleType(), "amount": T.DoubleType()}
    apart = {"amount__double": "amount__double__double", "amount": "amount__double"}
    assert names(**before_amount) == names(**before_amount) == apart
    assert names(**{name: before_amount[name] for name in reversed(before_amount)}) == apart
    assert names(amount__double=T.DoubleType(), amount=LONG)["amount"] == "amount"
    assert second_columns(store.table("quarantine")) == {
        "amount": [
            *("amount__double", "amount__string"),
            *("amount__struct", "amount__struct_2", "amount__date_2"),
        ],
        "amount__double": ["amount__double__double"],
    }
    # a diff has the table's columns by their names, and keeps its own
    of_diff = T.StructType([T.StructField(OP, TEXT), *schema_of(store.table("quarantine")).fields])
    plain = columns(**{field.name: field.dataType for field in of_diff.fields})
    for staged in (of_diff, plain):
        fitted = fit_into(store.table("quarantine"), QUARANTINE, staged, "meter")
        assert (fitted.new, {*fitted.names}) == ((), {*fitted.schema.names})
        assert all(name == of_table for name, of_table in fitted.names.items())
    # and so has the table itself, as rows that only go are compared with it
    itself = schema_of(store.table("quarantine"))
    asked = (store.table("quarantine"), QUARANTINE, itself, "meter")
    assert fit_into(*asked, has_names_of_table=True).new == ()
    assert nulls_counted(store.table("quarantine")) == frozenset()


@pytest.mark.parametrize(
    ("own", "second"),
    [
        ({}, "amount__double"),
        ({"amount__double": T.DoubleType()}, "amount__double_2"),
        ({"amount__double": TEXT}, "amount__double_2"),
        # a landing column that is only called like one; erasing by `amount` left such rows
        ({"amount__double": T.DoubleType()}, None),
    ],
)
def test_of_two_sources_the_column_that_was_renamed_is_the_second_one(tmp_path, own, second):
    store = Lake.at(str(tmp_path)).pipeline("meter")
    renamed = {} if second is None else {second: T.DoubleType()}
    kinds = {"amount": LONG, **own, **renamed, "input": TEXT, "quarantine_date": T.DateType()}
    staged = with_marks(columns(**kinds), dict.fromkeys(renamed, "amount"))
    create(store, QUARANTINE, staged)
    expected = {} if second is None else {"amount": [second]}
    assert second_columns(store.table("quarantine")) == expected
    found = fit_into(store.table("quarantine"), QUARANTINE, staged, "meter")
    assert found.new == ()
    assert all(name == of_table for name, of_table in found.names.items())


def test_a_second_column_is_in_its_table_before_a_diff_is_read_back_without_marks(tmp_path):
    store = Lake.at(str(tmp_path)).pipeline("near")
    before = columns(amount=LONG, input=TEXT, quarantine_date=T.DateType())
    create(store, QUARANTINE, before)
    of_right = columns(amount=LONG, amount__double=T.DoubleType(), **{"input": TEXT})
    create(store, QUARANTINE, with_marks(of_right, {"amount__double": "amount"}))
    assert second_columns(store.table("quarantine")) == {"amount": ["amount__double"]}


def test_no_mark_of_a_landing_table_is_taken_for_the_programs_own():
    """A landing table may be a copy of the quarantine of another pipeline."""
    marked = T.StructType([T.StructField("a", LONG, metadata={SECOND_OF: "b", "comment": "c"})])
    assert with_marks(marked, {}).fields[0].metadata == {"comment": "c"}


# ------------------------------------------------------------------------------------- identities


def test_nulls_are_told_in_the_columns_that_were_published_so_and_in_no_later_one(tmp_path):
    before = [Field("Amount", "long"), Field("quarantine_date", "date")]
    DeltaTable.create(str(tmp_path / "old"), Schema(before))
    table = DeltaTable(str(tmp_path / "old"))
    assert nulls_counted(table) == {"amount", "quarantine_date"}
    later = T.StructType([marked(T.StructField("note", TEXT))])
    table.alter.add_columns(Schema.from_json(later.json()).fields)
    assert nulls_counted(DeltaTable(str(tmp_path / "old"))) == {"amount", "quarantine_date"}
    assert nulls_counted(None) == frozenset()


def test_of_a_pipeline_that_is_new_no_null_is_told(tmp_path):
    store = Lake.at(str(tmp_path)).pipeline("meter")
    create(store, QUARANTINE, columns(quarantine_date=T.DateType(), amount=INT))
    assert nulls_counted(store.table("quarantine")) == frozenset()


# ----------------------------------------------------------------------------------------- names


def test_the_columns_of_a_diff_have_names_that_no_pipeline_may_give():
    assert OP.startswith(OWN_PREFIX)


# ---------------------------------------------------------------------------------------- emptied


def test_a_table_is_emptied_in_one_commit_that_names_its_run(tmp_path):
    store = Lake.at(str(tmp_path)).pipeline("meter")
    assert store.rows("firings") == 0
    rows = pa.table({"window_date": [1], "firing": [1]})
    store.create("firings", rows.schema, ["window_date"])
    for _ in range(2):
        store.append("firings", rows, to=store.table("firings"))
    assert store.rows("firings") == 2
    store.empty("firings", "abc-1")
    table = store.table("firings")
    assert (store.rows("firings"), table.to_pyarrow_table().num_rows) == (0, 0)
    assert (table.version(), table.history(1)[0]["userMetadata"]) == (3, "abc-1")
