"""A pipeline lives in a lake at any path: nothing is written beside it, and none of others goes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lakes import Line, a_record, a_spec, at, land
from odd_paths import ALL_SIGNS, SIGNS

from strandline.engine.frames import from_arrow
from strandline.lake.publish.staging import Staging, passing
from strandline.lake.store.lake import Lake

pytestmark = pytest.mark.spark

ROWS = pa.table({"name": ["a", "b"], "value": [1, 2]})


def values_of(frame):
    return sorted(row["value"] for row in frame.collect())


@pytest.mark.parametrize("name", SIGNS.values(), ids=SIGNS)
def test_an_engine_reads_and_writes_in_the_folder_that_is_named(spark, tmp_path, name):
    other = tmp_path / "of others"
    other.mkdir()
    store = Lake.at(str(tmp_path / name)).pipeline("meter")
    store.append("windows", ROWS)
    assert values_of(store.frame(spark, "windows")) == [1, 2]
    staging = Staging(spark, store, "a-1")
    assert values_of(staging.write("windows", from_arrow(spark, ROWS)).frame()) == [1, 2]
    assert values_of(staging.put("windows", [ROWS.slice(1)]).frame()) == [2]
    assert staging.part("windows").table()["value"].to_pylist() == [2]
    staging.drop()
    assert {path.name for path in tmp_path.iterdir()} == {name, other.name}
    assert {path.name for path in (tmp_path / name / "meter").rglob("*")} >= {"windows"}
    assert not store.keeps_staging("a-1")


def test_a_dry_run_removes_the_folder_that_it_has_made_and_no_other(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "strandline-a-1").mkdir()
    store = Lake.at(str(tmp_path / "lake")).pipeline("meter")
    staging = passing(spark, store, "a-1")
    staging.write("windows", from_arrow(spark, ROWS))
    staging.beside("left").put("windows", [ROWS])
    staging.drop()
    assert [*tmp_path.iterdir()] == [tmp_path / "strandline-a-1"]


@pytest.mark.story
def test_a_life_in_a_folder_of_all_signs_is_that_of_any_other(spark, tmp_path):
    """Staging once removed a folder of `lake`, where the lake was `lake#2`."""
    beside = tmp_path / ALL_SIGNS.partition("#")[0] / "meter/_staging"
    beside.mkdir(parents=True)
    table = f"landing/{ALL_SIGNS}"
    line = Line(spark, tmp_path / ALL_SIGNS, a_spec(source__table=table, quality__gaps="allow"))
    rows = [a_record("1 10:00", "1 09:00"), a_record("1 10:00", "1 09:00", "b", amount=2)]
    land(line.folder, rows, table=table)
    line.advance("2024-03-02")
    later = [a_record("2 12:00", "2 09:00", source) for source in "ab"]
    land(line.folder, later, mode="append", table=table)
    assert line.advance("2024-03-03", dry_run=True).changed
    line.advance("2024-03-03")
    windows = {(row["window_start"], row["total"]) for row in line.rows("windows")}
    assert windows == {(at("1 08:15"), 3)}
    assert {path.name for path in line.folder.iterdir()} == {"landing", "meter"}
    assert {path.name for path in tmp_path.iterdir()} == {ALL_SIGNS, beside.parts[-3]}
    assert beside.is_dir()
