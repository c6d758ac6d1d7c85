"""Process functions: found beside the pipeline files, called alike everywhere, and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from strandline.engine.replay.process_function import calls_of
from strandline.errors import InputError
from strandline.spec import find_spec, parse_spec
from strandline.spec.functions import ProcessError, function_of, result_of, times_of

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """
pipeline: p
source: {table: landing, arrival_time: at, event_time: ts, key: [device]}
watermark: {strategy: ascending}
window: {tumbling: 1h}
process: %s
returns: {n: bigint, first: string}
"""
SUMMARY = """
def summary(key, window, records, watermark):
    return [{"n": records.num_rows, "first": key["device"]}]
"""
PLAIN: dict[str, Any] = {
    "pipeline": "p",
    "source": {"table": "landing", "arrival_time": "at", "event_time": "ts"},
    "watermark": {"strategy": "ascending"},
    "window": {"tumbling": "1h"},
}
WINDOW = times_of(0, 3_600_000)


def beside(folder: Path, name: str = "speeds:summary", **files: str) -> Path:
    (folder / "p.yaml").write_text(PIPELINE % name, encoding="utf-8")
    for path, source in files.items():
        where = folder / (path.replace("__in__", "/") + ".py")
        where.parent.mkdir(exist_ok=True)
        where.write_text(source, encoding="utf-8")
    return folder


def test_a_module_beside_the_pipeline_file_is_part_of_its_fingerprint(tmp_path):
    first = find_spec(beside(tmp_path, speeds=SUMMARY), "p")
    same = find_spec(beside(tmp_path, speeds=SUMMARY, other="x = 1"), "p")
    changed = find_spec(beside(tmp_path, speeds=SUMMARY + "\n# slower\n"), "p")
    assert first.contents == ("n", "first")
    assert first.process.files == {"speeds.py": SUMMARY}
    assert first.spec_fingerprint == same.spec_fingerprint != changed.spec_fingerprint
    assert first.timeline_fingerprint == changed.timeline_fingerprint


def test_of_a_package_all_modules_belong_to_the_function(tmp_path):
    files = {
        "features__in__parts": "def many(records):\n    return records.num_rows\n",
        "features__in__speed": (
            "from features.parts import many\n\n\n"
            "def summary(key, window, records, watermark):\n"
            "    from . import parts\n"
            "    assert parts.many is many\n"
            "    return [{'n': many(records), 'first': window.start.isoformat()}]\n"
        ),
    }
    spec = find_spec(beside(tmp_path, "features.speed:summary", **files), "p")
    assert sorted(spec.process.files) == ["features/parts.py", "features/speed.py"]
    found = called(spec.process.files, spec.process.name)
    assert found == {"n": 2, "first": "1970-01-01T00:00:00+00:00"}


def called(files: dict[str, str], name: str = "speeds:summary", **returns: str) -> dict[str, Any]:
    records = pa.table({"x": [1, 2]})
    function = function_of(files, name)
    kinds = returns or {"n": "bigint", "first": "string"}
    found = result_of(function, {"device": "d"}, WINDOW, records, None, kinds)
    return {column: values[0].as_py() for column, values in found.items()}


def test_a_function_is_called_as_its_text_is_now():
    assert called({"speeds.py": SUMMARY}) == {"n": 2, "first": "d"}
    assert called({"speeds.py": SUMMARY.replace("num_rows", "num_columns")})["n"] == 1
    assert called({"speeds.py": SUMMARY})["n"] == 2


def of(body: str) -> dict[str, str]:
    return {"speeds.py": f"def summary(key, window, records, watermark):\n    {body}\n"}


def test_rows_come_as_dicts_or_as_a_table_and_none_leaves_the_columns_null():
    table = "import pyarrow as pa; return pa.table({'first': ['a'], 'n': [7]})"
    assert called(of(table)) == {"n": 7, "first": "a"}
    assert called(of("return []")) == {"n": None, "first": None}
    ranks = called(of("return [{'ranks': [1.5, None]}]"), ranks="array<double>")
    assert ranks == {"ranks": [1.5, None]}


def test_several_rows_are_told_as_an_array_of_structs():
    legs = [{"from": "a", "At": 1}, {"from": None, "At": 2}]
    told = called(of(f"return [{{'legs': {legs}}}]"), legs="array<struct<from:string,At:int>>")
    assert told == {"legs": legs}
    assert called(of("return [{'legs': []}]"), legs="array<struct<a:int>>") == {"legs": []}
    table = "import pyarrow as pa; return pa.table({'leg': [{'a': {'b': 1}}]})"
    assert called(of(table), leg="struct<a:struct<b:int>>") == {"leg": {"a": {"b": 1}}}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return [{'n': 1, 'first': 'a'}] * 2", "returned 2 rows, and a window of a key has one"),
        ("return [{'n': 1}]", "returned the columns ['n'], and `returns` names ['first', 'n']"),
        ("return [{'n': 'many', 'first': 'a'}]", "returned 'many' as n, which is not a bigint"),
        ("return [{'n': 2**63, 'first': 'a'}]", "as n, which is not a bigint"),
        ("return [{'n': 1, 'first': {'a': 1}}]", "as first, which is not a string"),
        ("return 7", "returned int, and not a list of dicts or a pyarrow Table"),
        ("return records['y']", "KeyError: "),
        ("raise ValueError('no\\nway')", "ValueError: no way (speeds.py, line 2)"),
        ("raise SystemExit(3)", "SystemExit: 3 (speeds.py, line 2)"),
    ],
)
def test_what_goes_wrong_in_a_function_names_key_and_window_in_one_line(body, told):
    with pytest.raises(ProcessError) as failed:
        called(of(body))
    message = str(failed.value)
    at = "key {'device': 'd'}, window 1970-01-01T00:00:00+00:00 to 1970-01-01T01:00:00+00:00: "
    assert message.startswith(f"strandline process: {at}")
    assert told in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "given", ["[{'a': 1}]", "[{'a': 1, 'b': 2, 'c': 3}]", "[{'a': 1, 'B': 2}]"]
)
def test_a_struct_has_just_the_fields_that_its_type_names(given):
    with pytest.raises(ProcessError, match=r"it has the fields \[.*\], and not \['a', 'b'\]"):
        called(of(f"return [{{'legs': {given}}}]"), legs="array<struct<a:int,b:int>>")


def test_a_type_keeps_the_names_of_its_fields_and_is_written_in_one_way():
    given = {"legs": "ARRAY<Struct<From: STRING, at: Decimal(5, 2)>>", "n": "BigInt"}
    returns = parse_spec(PLAIN | {"process": "a:b", "returns": given}, origin="p.yaml").returns
    assert returns == {"legs": "array<struct<From:string,at:decimal(5,2)>>", "n": "bigint"}


def test_a_module_that_fails_as_it_is_imported_is_told():
    with pytest.raises(ProcessError, match=r"speeds cannot be imported: ModuleNotFoundError"):
        called({"speeds.py": "import nothing_of_this_name"})
    with pytest.raises(ProcessError, match=r"cannot be imported: AttributeError"):
        called({"speeds.py": "x = 1"})
    with pytest.raises(ProcessError, match=r"cannot be imported: SystemExit: 3"):
        called({"speeds.py": "raise SystemExit(3)"})


@pytest.mark.parametrize(
    ("name", "source", "told"),
    [
        ("gone:summary", SUMMARY, "there is no gone.py beside the pipeline files"),
        ("a.b:summary", SUMMARY, "there is no a/b.py beside the pipeline files"),
        ("speeds:total", SUMMARY, "speeds.py defines no function total; it has summary"),
        ("speeds:summary", "def summary(:", "speeds.py is no Python"),
        ("speeds:summary", "def summary(key, window): ...", "cannot be called with key, window"),
        ("speeds:summary", "def summary(a, b, c, d, e): ...", "define it as def summary(key, win"),
        ("speeds:summary", "def summary(*all, x): ...", "cannot be called with key, window"),
        ("speeds:summary", "async def summary(a, b, c, d): ...", "cannot be called with key"),
        ("json:summary", SUMMARY, "json is a module of Python's, or an installed one"),
        ("strandline.x:summary", SUMMARY, "strandline is a module of Python's, or an installed"),
        ("pyarrow.x:summary", SUMMARY, "pyarrow is a module of Python's, or an installed one"),
    ],
)
def test_a_function_that_is_not_there_or_cannot_be_called_is_refused(tmp_path, name, source, told):
    with pytest.raises(InputError) as refused:
        find_spec(beside(tmp_path, name, speeds=source), "p")
    assert str(refused.value).startswith("p.yaml: process: ")
    assert told in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("arguments", ["a, b, c, d, more=1", "*all", "a, /, *b"])
def test_a_function_may_take_its_arguments_as_it_likes(tmp_path, arguments):
    source = f"def summary({arguments}):\n    return []\n"
    assert find_spec(beside(tmp_path, speeds=source), "p").process.function == "summary"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"process": "speeds"}, "process: 'speeds' is not the name of a function"),
        ({"process": "../x:f"}, "process: '../x:f' is not the name of a function"),
        ({"process": {"name": "a:b"}}, "is not the name of a function"),
        ({"process": "a:b"}, "process: 'a:b' is without `returns`"),
        ({"returns": {"n": "bigint"}}, "without a function; give process"),
        ({"process": "a:b", "returns": {"n": "long"}}, "not a type that a function can return"),
        ({"process": "a:b", "returns": {"n": "decimal(39,1)"}}, "not a type that a function can"),
        ({"process": "a:b", "returns": {"n": "array<int"}}, "not a type that a function can"),
        ({"process": "a:b", "returns": {"n": "struct<>"}}, "not a type that a function can"),
        ({"process": "a:b", "returns": {"n": "struct<a:int,A:int>"}}, "not a type that a function"),
        ({"process": "a:b", "returns": {"n": "struct<a int>"}}, "not a type that a function can"),
        ({"process": "a:b", "returns": {"n": "array<int>>"}}, "not a type that a function can"),
        ({"process": "a:b", "returns": {"records": "int"}}, "a result column that exists already"),
        (
            {"process": "a:b", "returns": {"n": "int"}, "aggregates": {"n": "count(*)"}},
            "a result column that exists already",
        ),
    ],
)
def test_what_a_file_says_wrongly_of_a_function_is_told(fields, told):
    with pytest.raises(InputError) as refused:
        parse_spec(PLAIN | fields, origin="p.yaml")
    assert told in str(refused.value)


def test_a_function_without_its_text_is_not_called():
    content = PLAIN | {"process": "a:b", "returns": {"n": "int"}}
    with pytest.raises(InputError, match="p: process: the source of the function's module is"):
        calls_of(parse_spec(content, origin="p.yaml"), (), ())


def test_a_pipeline_without_a_function_keeps_its_fingerprint():
    assert parse_spec(PLAIN, origin="p.yaml").spec_fingerprint == "371e716e74ecce57"
