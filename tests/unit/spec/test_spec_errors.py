"""A broken pipeline file is refused with the file, the YAML path, the value and the way out."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from strandline.errors import InputError
from strandline.spec import find_spec, load_spec, parse_spec

FLIGHTS = Path(__file__).parents[3] / "pipelines" / "flights.yaml"
GONE = object()
UNIT = "write a whole number and a unit: 200ms, 30s, 5m, 1h, 1d"
SPELLING = "check its spelling, or remove it"
MAP = "write `name: value` lines below it, or remove it"
QUOTE = "(YAML reads yes, no, on, off and bare dates its own way); quote it"
COLUMN_NAME = "use letters from a to z, digits and _, no digit first"
STRATEGIES = (
    "choose one of bounded_out_of_orderness, legacy_bounded_out_of_orderness, ascending, "
    "legacy_ascending, punctuated, time_lag, ingestion, expression, none"
)
KINDS = "the first key is one of tumbling, sliding, session, cumulative, global, count"
CHANNELS = "write a list such as [a, b], or discovered"
INSTANT = "write ISO-8601 such as 2013-01-15 or 2013-01-15T06:00:00Z"


def flights() -> dict[str, Any]:
    content = yaml.safe_load(FLIGHTS.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def changed(path: str, value: Any) -> dict[str, Any]:
    """The flights' pipeline with one value replaced, added or gone."""
    content = copy.deepcopy(flights())
    part = content
    *above, last = path.split("/")
    for name in above:
        part = part[name]
    if value is GONE:
        del part[last]
    else:
        part[last] = value
    return content


def refusal(content: Any) -> str:
    with pytest.raises(InputError) as refused:
        parse_spec(content, origin="flights.yaml")
    assert refused.value.exit_code == 2
    return str(refused.value)


def lines(content: Any) -> list[str]:
    head, *told = refusal(content).splitlines()
    assert head == "flights.yaml: not a valid pipeline"
    return [line.strip() for line in told]


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        # keys
        ("pipline", "x", f"pipline: no such key ('x'); {SPELLING}"),
        ("source/foo", 1, f"source.foo: no such key (1); {SPELLING}"),
        ("watermark/lag", "1s", f"watermark.lag: no such key ('1s'); {SPELLING}"),
        ("source", GONE, "source: missing; add it"),
        ("source/table", GONE, "source.table: missing; add it"),
        ("window", GONE, "window: missing; add it"),
        ("watermark/bound", GONE, "watermark.bound: missing; add it"),
        # durations
        ("watermark/bound", "3 hours", f"watermark.bound: '3 hours' is not a duration; {UNIT}"),
        ("watermark/bound", 3, f"watermark.bound: 3 is not a duration; {UNIT}"),
        ("watermark/bound", None, f"watermark.bound: null is not a duration; {UNIT}"),
        (
            "watermark/bound",
            "-1s",
            "watermark.bound: '-1s' is a negative duration; give zero or more",
        ),
        (
            "watermark/idleness",
            "0s",
            "watermark.idleness: '0s' is not a length; give a positive duration",
        ),
        (
            "allowed_lateness",
            "9223372036854775808ms",
            "allowed_lateness: '9223372036854775808ms' is longer than 64 bits of milliseconds; "
            "the longest is 9223372036854775807ms",
        ),
        # watermarks
        ("watermark", "3h", f"watermark: '3h' is not a map of keys; {MAP}"),
        (
            "watermark/strategy",
            "bounded",
            f"watermark.strategy: 'bounded' is not a strategy; {STRATEGIES}",
        ),
        ("watermark/strategy", GONE, f"watermark.strategy: missing; {STRATEGIES}"),
        (
            "watermark/emit",
            "200ms",
            "watermark.emit: '200ms' is not an emission; write per_record or {every: 200ms}",
        ),
        (
            "watermark/emit",
            {"every": "often"},
            f"watermark.emit.every: 'often' is not a duration; {UNIT}",
        ),
        ("watermark/emit", {}, "watermark.emit.every: missing; add it"),
        (
            "watermark/combine",
            "union",
            "watermark.combine: 'union' is not a choice here; write 'valve' or 'splits'",
        ),
        # windows
        (
            "window/tumbling",
            "0s",
            "window.tumbling: '0s' is not a length; give a positive duration",
        ),
        (
            "window",
            {"tumbling": "1h", "offset": "1h"},
            "window.offset: '1h' is not smaller than the size; give one between -size and size",
        ),
        (
            "window",
            {"sliding": "1h", "every": "1m", "offset": "-1m"},
            "window.offset: '-1m' is not smaller than the slide; give one between -slide and slide",
        ),
        (
            "window",
            {"cumulative": "1h", "step": "7m"},
            "window.cumulative: '1h' is not a multiple of the step; give a whole number of steps",
        ),
        ("window", {"session": "20 m"}, f"window.session: '20 m' is not a duration; {UNIT}"),
        (
            "window",
            {"tumblin": "1h"},
            f"window: {{'tumblin': '1h'}} is not a kind of window; {KINDS}",
        ),
        ("window", "1h", f"window: '1h' is not a kind of window; {KINDS}"),
        ("window/every", "1m", f"window.every: no such key ('1m'); {SPELLING}"),
        # source
        ("source/table", " ", "source.table: ' ' is empty; name a column or give an expression"),
        (
            "source/event_time",
            True,
            f"source.event_time: true is not a plain text {QUOTE}",
        ),
        (
            "source/channels",
            "disc",
            f"source.channels: 'disc' is not a set of channels; {CHANNELS}",
        ),
        ("source/channels", [], f"source.channels: [] is not a set of channels; {CHANNELS}"),
        (
            "source/channels",
            ["EWR", "EWR"],
            "source.channels: ['EWR', 'EWR'] is a list with a channel twice; "
            "name each channel once",
        ),
        ("source/channels", ["a", False], f"source.channels.1: false is not a plain text {QUOTE}"),
        (
            "source/channels",
            GONE,
            "source.channels: missing, and channel needs it; give both, or neither for one channel",
        ),
        (
            "source/channel",
            None,
            "source.channel: missing, and channels needs it; give both, or neither for one channel",
        ),
        (
            "source/key",
            ["a", "a"],
            "source.key: ['a', 'a'] is a list with a column twice; name each key column once",
        ),
        (
            "source/key",
            [["a"]],
            "source.key: [['a']] is not a key; "
            "write a list of columns, or a map of name: expression",
        ),
        (
            "source/key",
            ["a+1"],
            "source.key.a+1: 'a+1' is not a legal name of a column; "
            "give it one in a map: key: {a_1: 'a+1'}",
        ),
        (
            "source/key",
            ["tags['x']"],
            "source.key.tags['x']: \"tags['x']\" is not a legal name of a column; "
            "give it one in a map: key: {tags_x: 'tags[''x'']'}",
        ),
        (
            "source/key",
            ["de.vice"],
            "source.key.de.vice: 'de.vice' is not a legal name of a column; give it one in a map: "
            "key: {de_vice: '`de.vice`'}, without backticks for a field of a struct",
        ),
        (
            "source/key",
            ["`2nd id`"],
            "source.key.`2nd id`: '`2nd id`' is not a legal name of a column; "
            "give it one in a map: key: {key_2nd_id: '`2nd id`'}",
        ),
        ("source/id", [], "source.id: [] is not a list of columns; write [a, b]"),
        ("source/start", "soon", f"source.start: 'soon' is not an instant; {INSTANT}"),
        (
            "source/start",
            "0001-01-01T00:00:00+14:00",
            "source.start: '0001-01-01T00:00:00+14:00' is outside the years 0001 to 9999 in UTC; "
            "give an instant inside them",
        ),
        (
            "source/deduplicate",
            {"columns": ["flight"], "within": "1d"},
            "source.deduplicate.within: '1d' is not a time of arrival; "
            "write a duration and `of arrival`: 1d of arrival",
        ),
        # results
        (
            "aggregates/records",
            "count(*)",
            "aggregates.records: 'records' is a result column that exists already; "
            "choose another name",
        ),
        (
            "aggregates/origin",
            "min(origin)",
            "aggregates.origin: 'origin' is a result column that exists already; "
            "choose another name",
        ),
        *(
            (
                f"aggregates/{name}",
                "count(*)",
                f"aggregates.{name}: '{name}' is a result column that exists already; "
                "choose another name",
            )
            for name in ("Window_Start", "firing", "TIMING", "order_rank", "supersedes_windows")
        ),
        (
            "source/key",
            {"Watermark_MS": "origin"},
            "source.key.Watermark_MS: 'Watermark_MS' is a result column that exists already; "
            "choose another name",
        ),
        (
            "aggregates/_Strandline_x",
            "count(*)",
            "aggregates._Strandline_x: '_Strandline_x' is reserved, as all names that begin with "
            "_strandline_; choose another",
        ),
        (
            "aggregates/a b",
            "count(*)",
            f"aggregates.a b: 'a b' is not a legal name of a column; {COLUMN_NAME}",
        ),
        (
            "aggregates/departures",
            "",
            "aggregates.departures: '' is empty; name a column or give an expression",
        ),
        ("aggregates", ["count(*)"], f"aggregates: ['count(*)'] is not a map of keys; {MAP}"),
        (
            "pipeline",
            "../etc",
            "pipeline: '../etc' is not a legal name of a pipeline; "
            "use letters from a to z, digits, _ and -, a letter first",
        ),
        # quality and the rest
        ("quality/max_late_share", 2, "quality.max_late_share: 2 is too large; give at most 1"),
        (
            "quality/max_late_share",
            "2%",
            "quality.max_late_share: '2%' is not a number; give one such as 0.02",
        ),
        (
            "quality/gaps",
            False,
            "quality.gaps: false is not a choice here; write 'allow', 'warn' or 'fail'",
        ),
        (
            "overridden",
            "drop",
            "overridden: 'drop' is not a choice here; write 'keep' or 'redo'",
        ),
        (
            "quality/expectations",
            [{"type": "between"}],
            "quality.expectations.0.type: 'between' is not an expectation; "
            "name one such as expect_column_values_to_not_be_null",
        ),
        (
            "quality/expectations",
            "none",
            "quality.expectations: 'none' is not a list; write [a, b]",
        ),
        ("firings", "yes", "firings: 'yes' is not a boolean; write true or false"),
        *(
            (
                "source/table",
                path,
                f"source.table: {path!r} is a path that leads out of the lake; "
                "give an absolute path or a URI",
            )
            for path in ("../x", "..", "landing/../../x")
        ),
        (
            "spark",
            {"spark.x": {"a": 1}},
            "spark.spark.x: {'a': 1} is not a setting; give a text, a number or a boolean",
        ),
        (
            "schedule",
            "every morning",
            "schedule: 'every morning' is not a schedule; "
            'write the five fields of cron, such as "0 6 * * *", {asset: NAME} of an asset of '
            "Airflow that the landing updates, or null",
        ),
        (
            "schedule",
            "99 * * * *",
            "schedule: '99 * * * *' is not a schedule; "
            'write the five fields of cron, such as "0 6 * * *", {asset: NAME} of an asset of '
            "Airflow that the landing updates, or null",
        ),
        (
            "schedule",
            {"asset": ""},
            "schedule: {'asset': ''} is not a schedule; "
            'write the five fields of cron, such as "0 6 * * *", {asset: NAME} of an asset of '
            "Airflow that the landing updates, or null",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_place_and_the_way_out(path, value, told):
    assert lines(changed(path, value)) == [f"flights.yaml: {told}"]


def test_an_expectation_of_pairs_is_refused_where_windows_alone_are_published():
    asked = {"type": "expect_column_to_exist", "table": "pairs", "column": "pair"}
    assert refusal(changed("quality/expectations", [asked])) == (
        "flights.yaml: quality.expectations.0.table: pairs is not published by this pipeline; "
        "choose windows or completeness"
    )


def test_all_that_is_wrong_is_told_at_once():
    content = changed("watermark/bound", "x")
    content["window"] = {"tumbling": "y"}
    assert [line.split(": ")[1] for line in lines(content)] == [
        "watermark.bound",
        "window.tumbling",
    ]


@pytest.mark.parametrize("content", [None, [], "flights", 7])
def test_a_document_that_is_no_map_is_refused(content):
    assert refusal(content) == "flights.yaml: not a pipeline; a pipeline file is a map of keys"


# ------------------------------------------------------------------------------------------ files


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_key_given_twice_is_refused_with_its_line(tmp_path):
    path = write(tmp_path, "twice.yaml", "pipeline: a\nsource: {}\npipeline: b\n")
    with pytest.raises(InputError) as refused:
        load_spec(path)
    assert str(refused.value) == (
        "twice.yaml: not YAML: line 3, column 1: 'pipeline' is given twice; correct it there"
    )


def test_a_file_that_is_not_yaml_is_refused_with_its_line(tmp_path):
    path = write(tmp_path, "broken.yaml", "pipeline: a\nsource: [\n")
    with pytest.raises(InputError, match=r"broken\.yaml: not YAML: line 3, column 1: .*correct it"):
        load_spec(path)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InputError, match=r"binary\.yaml: not YAML: .*correct it there"):
        load_spec(path)


def test_a_date_that_does_not_exist_is_told_by_its_path(tmp_path):
    text = FLIGHTS.read_text(encoding="utf-8").replace("2013-01-01T00:00:00Z", "2013-13-01")
    with pytest.raises(InputError) as refused:
        load_spec(write(tmp_path, "flights.yaml", text))
    assert f"source.start: '2013-13-01' is not an instant; {INSTANT}" in str(refused.value)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(InputError) as refused:
        load_spec(tmp_path / "gone.yaml")
    assert str(refused.value) == (
        "gone.yaml: cannot be read (No such file or directory); check the path"
    )


def test_an_unknown_pipeline_is_told_with_the_known_ones(tmp_path):
    write(tmp_path, "one.yaml", FLIGHTS.read_text(encoding="utf-8"))
    with pytest.raises(InputError, match=r"fligths: no such pipeline; .* has: flights"):
        find_spec(tmp_path, "fligths")


def test_a_pipeline_defined_twice_is_refused_with_both_files(tmp_path):
    for name in ("one.yaml", "two.yml"):
        write(tmp_path, name, FLIGHTS.read_text(encoding="utf-8"))
    with pytest.raises(InputError) as refused:
        find_spec(tmp_path, "flights")
    assert str(refused.value) == (
        "flights: defined by one.yaml and two.yml; give each pipeline a name of its own"
    )


def test_a_folder_that_is_none_is_told(tmp_path):
    with pytest.raises(InputError, match=r"--pipelines: .*gone is not a folder; name the"):
        find_spec(tmp_path / "gone", "flights")


def test_a_broken_file_breaks_only_its_own_pipeline(tmp_path):
    write(tmp_path, "broken.yaml", "pipeline: [\n")
    write(tmp_path, "twice.yaml", "pipeline: twice\npipeline: twice\n")
    write(tmp_path, "flights.yaml", FLIGHTS.read_text(encoding="utf-8"))
    assert find_spec(tmp_path, "flights").pipeline == "flights"
    for name in ("broken", "twice"):
        with pytest.raises(InputError, match=rf"{name}\.yaml: not YAML"):
            find_spec(tmp_path, name)


# ---------------------------------------------------------------- known, but not yet there


@pytest.mark.parametrize("name", ["spark.sql.session.timeZone", "spark.sql.ansi.enabled"])
def test_a_setting_of_spark_that_would_change_the_numbers_is_refused(name):
    with pytest.raises(InputError, match=f"spark.{name}.*would change the numbers"):
        parse_spec(changed("spark", {name: "x"}), origin="flights.yaml")


@pytest.mark.parametrize(
    "path", ["window/timezone", "window/tz", "timezone", "source/TimeZone", "watermark/zone"]
)
def test_windows_in_local_time_are_refused_with_what_an_offset_can_do(path):
    (told,) = lines(changed(path, "Europe/Berlin"))
    assert told.startswith(f"flights.yaml: {path.replace('/', '.')}: no such key ('Europe/Berlin')")
    assert "aligned to UTC and one fixed offset" in told
    assert "remove it, and give an offset: {tumbling: 1d, offset: -1h}" in told


@pytest.mark.parametrize(
    ("pipeline", "table"),
    [("landing", "raw/flights"), ("Landing", "raw/flights"), ("raw", "./raw/flights")],
)
def test_a_pipeline_cannot_lie_in_the_folder_where_tables_land(pipeline, table):
    content = changed("pipeline", pipeline)
    content["source"]["table"] = table
    said = refusal(content)
    assert f"{pipeline!r} is also the folder of the lake that landing tables lie in" in said
    assert "give the pipeline another name" in said


def test_a_pipeline_may_be_called_as_a_table_is():
    assert parse_spec(changed("source/table", "landing/flights"), origin="f.yaml").pipeline
    assert parse_spec(changed("source/table", "/flights/of others"), origin="f.yaml").pipeline
