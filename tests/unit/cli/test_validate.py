"""`strandline validate`: expressions held against the tables of the lake, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from strandline.cli.groups import EngineOptions, Places
from strandline.cli.run_options import Repetition
from strandline.cli.running import run_pipeline
from strandline.errors import InputError
from strandline.lake.landing.known_columns import columns_in_lake
from strandline.lake.store.lake import Lake
from strandline.spec import load_spec
from strandline.spec.expressions import problems_of

if TYPE_CHECKING:
    from pathlib import Path

command = import_module("strandline.cli.main")
INSTANT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("landed_at", INSTANT),
        ("happened_at", INSTANT),
        ("ms", pa.int64()),
        ("page", pa.string()),
        ("who", pa.struct([("name", pa.string())])),
        ("day", pa.date32()),
    ]
)
SIDE = {
    "arrival_date": "day",
    "arrival_time": "landed_at",
    "event_time": "happened_at",
    "key": ["page"],
    "watermark": {"strategy": "ascending"},
}
CLICKS: dict[str, Any] = {
    "pipeline": "clicks",
    "source": {"table": "landing/clicks", **SIDE} | {"channel": None},
    "watermark": {"strategy": "ascending"},
    "window": {"tumbling": "1h"},
    "aggregates": {"n": "count(*)", "people": "count(DISTINCT who.name)"},
    "firings": True,
}
CLICKS["source"].pop("watermark")
DAILY: dict[str, Any] = {
    "pipeline": "daily",
    "source": {"pipeline": "clicks", "key": ["page"]},
    "window": {"tumbling": "1d"},
    "aggregates": {"n": "sum(n)", "hours": "count(DISTINCT window_start)"},
}
JOIN: dict[str, Any] = {
    "pipeline": "near",
    "sources": {
        "left": {"table": "landing/clicks", **SIDE},
        "right": {"table": "landing/views", **SIDE},
    },
    "join": {"window": {}},
    "window": {"tumbling": "1h"},
    "aggregates": {"n": "count(DISTINCT left_who.name)", "most": "max(right_ms)"},
}


@pytest.fixture
def home(tmp_path):
    """A folder of pipelines, and a lake with the landing tables of two."""
    for name in ("clicks", "views"):
        write_deltalake(
            str(tmp_path / "lake" / "landing" / name), SCHEMA.empty_table(), partition_by=["day"]
        )
    (tmp_path / "pipelines").mkdir()
    for content in (CLICKS, DAILY, JOIN):
        write(tmp_path, content)
    return tmp_path


def write(home: Path, content: dict[str, Any]) -> None:
    path = home / "pipelines" / f"{content['pipeline']}.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def changed(content: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    first, _, rest = path.partition(".")
    return content | {first: changed(content[first], rest, value) if rest else value}


def validated(home: Path, capsys, *targets: str, code: int = 0) -> dict[str, dict[str, Any]]:
    places = ["--pipelines", str(home / "pipelines"), "--lake", str(home / "lake")]
    with pytest.raises(SystemExit) as ended:
        command.main(["validate", *targets, "--json", *places])
    assert int(ended.value.code or 0) == code
    results = json.loads(capsys.readouterr().out)
    return {result["target"].rpartition("/")[2]: result for result in results}


def test_pipelines_whose_expressions_fit_their_tables_are_valid(home, capsys):
    results = validated(home, capsys)
    assert {name: result["notes"] for name, result in results.items()} == {
        "clicks.yaml": [],
        "daily.yaml": [],
        "near.yaml": [],
    }


def test_all_mistakes_of_a_file_are_named_with_file_place_and_way_out(home, capsys):
    broken = changed(CLICKS, "source.event_time", "ms")
    broken = changed(broken, "source.arrival_time", "laned_at")
    broken = changed(broken, "source.key", {"name": "who.nam"})
    broken = changed(broken, "aggregates", {"n": "first(page)", "m": "sum(rand())"})
    write(home, broken | {"pipeline": "clicks"})
    (home / "pipelines" / "daily.yaml").unlink()
    problem = validated(home, capsys, code=2)["clicks.yaml"]["problem"]
    head, *lines = problem.splitlines()
    assert head == "clicks.yaml: 5 mistakes in its expressions"
    assert [line.split(": ")[1] for line in lines] == [
        "source.arrival_time", "source.event_time", "source.key.name", "aggregates.n",
        "aggregates.m",
    ]  # fmt: skip
    assert "perhaps landed_at" in lines[0]
    assert "'ms' is BIGINT, which is not a time; give an expression such as" in lines[1]
    assert "who is STRUCT and has no field nam; perhaps name" in lines[2].replace(")", "")


def test_what_sail_lacks_is_named_where_sail_is_the_engine(home, capsys, monkeypatch):
    lacking = {"n": "count(*)", "m": "max(try_to_date(page))", "p": "max(parse_url(page, 'HOST'))"}
    write(home, changed(CLICKS, "aggregates", lacking))
    validated(home, capsys, "clicks")
    monkeypatch.setenv("STRANDLINE_ENGINE", "sail")
    problem = validated(home, capsys, "clicks", code=2)["clicks"]["problem"]
    assert "aggregates.m: 'max(try_to_date(page))': try_to_date(): Sail does not have it" in problem
    assert "parse_url(): Sail takes wrong addresses" in problem
    assert problem.count("--engine spark") == 2
    monkeypatch.delenv("STRANDLINE_ENGINE")
    write(home, changed(CLICKS, "aggregates", lacking) | {"engine": "sail"})
    assert validated(home, capsys, "clicks", code=2)["clicks"]["problem"] == problem


def test_a_file_for_a_spark_connect_server_is_valid_without_its_address(home, capsys, monkeypatch):
    monkeypatch.delenv("STRANDLINE_REMOTE", raising=False)
    write(home, CLICKS | {"engine": "connect"})
    assert validated(home, capsys, "clicks")["clicks"]["valid"]


def test_a_pipeline_is_named_by_its_file_whether_that_is_asked_for_or_the_pipeline(home, capsys):
    write(home, changed(CLICKS, "source.valid", "amount > 0"))
    asked = str(home / "pipelines" / "clicks.yaml")
    for target in ("clicks", asked):
        (result,) = validated(home, capsys, target, code=2).values()
        assert result["problem"].startswith(
            "clicks.yaml: source.valid: 'amount > 0' is neither a column nor"
        )


def test_two_files_of_one_name_are_both_wrong_as_no_command_takes_that_name(
    home, capsys, monkeypatch
):
    twin = (home / "pipelines" / "clicks.yaml").read_text(encoding="utf-8")
    (home / "pipelines" / "twin.yaml").write_text(twin, encoding="utf-8")
    found = validated(home, capsys, code=2)
    assert [found[name]["valid"] for name in ("clicks.yaml", "twin.yaml")] == [False, False]
    assert "clicks: defined by clicks.yaml and twin.yaml" in found["twin.yaml"]["problem"]
    monkeypatch.chdir(home)  # however the path is written
    for path in ("pipelines/twin.yaml", "./pipelines/twin.yaml"):
        (twin_alone,) = validated(home, capsys, path, code=2).values()
        assert "defined by clicks.yaml and twin.yaml" in twin_alone["problem"]


def test_a_table_that_has_not_landed_yet_is_a_note(home, capsys):
    write(home, changed(CLICKS, "source.table", "landing/later"))
    result = validated(home, capsys, "clicks")["clicks"]
    assert result["valid"]
    (note,) = result["notes"]
    assert note == "source.table: no Delta table at landing/later yet: its columns are not checked"
    write(home, changed(JOIN, "sources.right.table", "main.events.views"))
    (note,) = validated(home, capsys, "near")["near"]["notes"]
    assert note.startswith("sources.right.table: main.events.views is a table of a catalog")


def test_a_table_that_cannot_be_read_is_not_one_that_has_yet_to_land(home, capsys):
    (log,) = (home / "lake" / "landing" / "clicks" / "_delta_log").glob("*.json")
    log.write_text("{broken", encoding="utf-8")
    (note,) = validated(home, capsys, "clicks")["clicks"]["notes"]
    assert note.startswith("source.table landing/clicks: a table's log is damaged")
    assert note.endswith(": its columns are not checked")
    assert " yet" not in note


def test_a_pipeline_over_results_of_none_is_named_with_its_file(home, capsys):
    (home / "pipelines" / "clicks.yaml").unlink()
    problem = validated(home, capsys, "daily", code=2)["daily"]["problem"]
    assert problem.startswith("daily.yaml: source.pipeline: clicks: no such pipeline; ")


def test_a_place_where_no_table_can_lie_is_wrong_and_not_missing(home, capsys):
    write(home, changed(CLICKS, "source.table", "landing/t[1]"))
    result = validated(home, capsys, "clicks", code=2)["clicks"]
    assert not result["valid"]
    assert "source.table" in result["problem"]
    assert "[" in result["problem"]


def test_what_needs_no_table_is_checked_without_one(home, capsys):
    write(home, changed(changed(CLICKS, "source.table", "later"), "source.valid", "rand() > 1"))
    result = validated(home, capsys, "clicks", code=2)["clicks"]
    assert "is not deterministic (rand())" in result["problem"]


def test_what_nobody_knows_is_a_note_that_says_who_is_asked(home, capsys):
    write(home, changed(CLICKS, "aggregates", {"n": "my_sum(ms)"}))
    result = validated(home, capsys, "clicks")["clicks"]
    assert result["notes"] == [
        "aggregates.n: my_sum() is none of Spark's own functions that are known here: "
        "checked by the engine in `plan` and each run"
    ]


def test_results_of_another_pipeline_have_the_columns_that_its_file_says(home, capsys):
    write(home, changed(DAILY, "aggregates", {"n": "sum(nn)", "p": "max(people)"}))
    problem = validated(home, capsys, "daily", code=2)["daily"]["problem"]
    assert problem.startswith(
        "daily.yaml: aggregates.n: 'sum(nn)' is neither a column nor an expression"
    )
    assert "perhaps n" in problem


def test_each_side_of_a_join_is_held_against_its_own_table(home, capsys):
    broken = changed(JOIN, "sources.right.event_time", "ms")
    write(home, changed(broken, "aggregates", {"n": "sum(ms)", "m": "sum(right_ms)"}))
    problem = validated(home, capsys, "near", code=2)["near"]["problem"]
    _, *lines = problem.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["sources.right.event_time", "aggregates.n"]


def test_people_see_the_notes_below_their_pipeline(home, capsys):
    write(home, changed(CLICKS, "source.table", "landing/later"))
    places = ["--pipelines", str(home / "pipelines"), "--lake", str(home / "lake")]
    with pytest.raises(SystemExit):
        command.main(["validate", "clicks", *places])
    first, second = capsys.readouterr().out.splitlines()
    assert first == "valid  clicks"
    assert second.startswith("  note: source.table: no Delta table at landing/later yet")


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_run_says_the_same_before_spark_is_started(home, monkeypatch, dry_run):
    write(home, changed(CLICKS, "source.event_time", "ms"))

    def no_spark(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("strandline.cli.running.application", no_spark)
    with pytest.raises(InputError, match=r"clicks: source\.event_time: 'ms' is BIGINT") as refused:
        run_pipeline(
            "clicks",
            {"kind": "advance", "to_ms": 1_600_000_000_000, "dry_run": dry_run},
            Places(str(home / "pipelines"), str(home / "lake")),
            EngineOptions(),
            Repetition(),
            as_json=True,
        )
    assert refused.value.exit_code == 2


def test_a_hundred_pipelines_are_checked_in_a_second(home):
    for number in range(100):
        many = {f"a{i}": f"sum(ms + {number}) / count(DISTINCT who.name, {i})" for i in range(5)}
        write(home, CLICKS | {"pipeline": f"p{number}", "aggregates": many})
    specs = [load_spec(path) for path in sorted((home / "pipelines").glob("p*.yaml"))]
    lake = Lake.at(str(home / "lake"))
    problems_of(specs[0], {}, "x")  # what is loaded once
    began = time.monotonic()
    for spec in specs:
        columns, notes = columns_in_lake(lake, spec)
        assert (problems_of(spec, columns, "x"), notes) == ([], [])
    assert time.monotonic() - began < 5  # a second on a machine that has nothing else to do


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("strandline.cli.main", {"pyspark", "pyarrow", "pandas", "pydantic", "great_expectations"}),
        ("strandline.cli.main, strandline.pipeline.request.answered", {"pyspark", "sqlglot"}),
        ("strandline.spec", {"pyspark", "pyarrow", "pandas", "sqlglot"}),
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(modules, absent):
    loads = f"import sys, {modules}; print({{n.partition('.')[0] for n in sys.modules}} & {absent})"
    said = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"


def test_pipelines_over_tables_without_expectations_are_checked_without_pandas_or_arrow(home):
    heavy = {"pandas", "numpy", "pyarrow", "pyspark", "great_expectations"}
    assert loaded_to_validate(home, "clicks", "near") & heavy == set()


def test_nor_are_usual_expectations_with_great_expectations(home):
    near = home / "pipelines" / "near.yaml"
    usual = "{type: expect_column_values_to_not_be_null, column: state}"
    near.write_text(f"{near.read_text('utf-8')}quality:\n  expectations: [{usual}]\n", "utf-8")
    assert loaded_to_validate(home, "near") & {"pandas", "great_expectations"} == set()


def test_nor_are_chained_ones_whose_firings_need_no_arrow_either(home):
    heavy = {"pandas", "numpy", "pyarrow", "pyspark", "great_expectations"}
    assert loaded_to_validate(home, "daily") & heavy == set()


def loaded_to_validate(home: Path, *pipelines: str) -> set[str]:
    """The modules that are loaded by the time some pipelines are found valid."""
    at = ["--pipelines", f"{home}/pipelines", "--lake", f"{home}/lake"]
    code = (
        "import sys; from strandline.cli.main import main\n"
        f"try: main({[*at, 'validate', *pipelines]})\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        "print(*sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {*said.stdout.splitlines()[-1].split()}
