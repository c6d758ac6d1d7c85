"""A path is a path: with whatever signs, tables lie there and nowhere else, or none is written."""

from __future__ import annotations

from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from odd_paths import ALL_SIGNS, REFUSED, SIGNS
from staged import staged

from strandline.errors import InputError
from strandline.lake.store.lake import Lake
from strandline.lake.store.places import below, of_hadoop, path_of, place_of, uri_of
from strandline.lake.store.reads import dataset_of, paths_below

A_NAME = st.text(
    st.characters(exclude_characters="/\x00", exclude_categories=["Cs"]), min_size=1
).filter(lambda name: name not in {".", ".."})


@given(A_NAME)
def test_a_path_is_the_path_of_its_uri(name):
    path = f"/lakes/{name}/meter"
    assert str(path_of(uri_of(path))) == path
    assert str(path_of(path)) == path


@pytest.mark.parametrize("name", [*SIGNS.values(), ALL_SIGNS], ids=[*SIGNS, "all"])
def test_a_lake_lies_in_the_folder_that_is_named_and_nothing_beside_it(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / name
    for root in (str(folder), name if not name.startswith("/") else f"./{name}", folder.as_uri()):
        assert Lake.at(root).root == str(folder)
    store = Lake.at(name).pipeline("meter")
    rows = pa.table({"day": ["x y", "b"], "value": [1, 2]})
    store.create("windows", rows.schema, ["day"])
    store.append("windows", rows, to=store.table("windows"))
    table = store.table("windows")
    assert dataset_of(table).to_table().num_rows == 2
    paths = pa.table(table.get_add_actions())["path"].to_pylist()
    assert paths_below(table, table.file_uris()) == {*map(unquote, paths)}
    assert staged(store, rows, "a-1").count() == 2
    there = folder / "meter/_staging/a-1"
    assert [path.name for path in there.rglob("*.parquet")] == ["part-0.parquet"]
    store.drop_staging("a-1")
    assert not there.exists()
    assert [*tmp_path.iterdir()] == [folder]


def test_a_file_is_no_lake(tmp_path):
    (tmp_path / "lake").touch()
    with pytest.raises(InputError, match="/lake: is a file; name the folder"):
        Lake.at(str(tmp_path / "lake"))


@pytest.mark.parametrize("name", REFUSED)
def test_a_folder_in_which_delta_rs_finds_no_table_is_refused_before_anything_is_written(
    tmp_path, name
):
    for place in (name, f"{name}/lake"):
        with pytest.raises(InputError, match="delta-rs opens no table") as caught:
            Lake.at(str(tmp_path / place))
        assert caught.value.exit_code == 2
    with pytest.raises(InputError, match=r"source\.table"):
        Lake.at(str(tmp_path)).resolve(f"landing/{name}")
    assert not [*tmp_path.iterdir()]


def test_a_link_is_judged_by_where_it_leads(tmp_path):
    (tmp_path / "g[1]").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "g[1]")
    with pytest.raises(InputError, match="delta-rs opens no table"):
        Lake.at(str(tmp_path / "link"))
    (tmp_path / "a b#1").mkdir()
    (tmp_path / "other").symlink_to(tmp_path / "a b#1")
    assert Lake.at(str(tmp_path / "other")).root == str(tmp_path / "other")


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("", "empty"),
        ("file:///lakes/a#1", "ends at"),
        ("file:///lakes/a?x", "ends at"),
        ("file:///lakes/a#", "ends at"),
        ("file://other/lakes", "another machine"),
    ],
)
def test_a_uri_that_is_no_path_of_this_machine_is_refused(uri, problem):
    with pytest.raises(InputError, match=problem):
        place_of(uri, "lake")


def test_hadoops_names_of_s3_are_s3_and_a_store_without_a_bucket_is_none():
    assert place_of("s3a://bucket/a", "lake") == place_of("S3N://bucket/a/", "lake")
    assert place_of("s3a://bucket/a", "lake") == "s3://bucket/a"
    with pytest.raises(InputError, match="names no bucket; write it as s3://BUCKET/PATH"):
        place_of("s3://", "lake")


def test_an_object_stores_uri_stays_as_it_is():
    assert place_of("s3://bucket/a%20b/", "lake") == "s3://bucket/a%20b"
    assert path_of("s3://bucket/a") is None
    assert Lake.at("s3://bucket/a").folder is None


def test_other_programs_have_other_ways_to_write_a_path():
    assert of_hadoop("file:/a b%20/c") == of_hadoop("file:///a b%20/c") == "/a b%20/c"
    assert of_hadoop("s3a://b/c") == "s3a://b/c"
    assert below("file:///a%20b/t/", "/a%20b/t/day=x%20y/1.parquet") == "day=x%20y/1.parquet"


def test_delta_rs_still_cannot_open_what_is_refused(tmp_path):
    """Once it can, the refusal goes."""
    found = []
    for name in ("g[1]", "a%41", "a\\b", "a\nb"):
        (tmp_path / name).mkdir()
        place, rows = str(tmp_path / name / "table"), pa.table({"a": [1]})
        try:
            write_deltalake(place, rows)
            write_deltalake(place, rows, mode="append")
            found.append(name)
        except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
            assert not isinstance(error, KeyboardInterrupt)
    assert not found
