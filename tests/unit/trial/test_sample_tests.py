"""A pipeline's test: rows beside its file, the windows that they must give, and what is refused."""

from __future__ import annotations

import json

import pytest

from strandline.cli import main

FLIGHTS = """
pipeline: flights
source:
  table: landing/flights
  arrival_time: arrived
  event_time: at
  channel: origin
  channels: [a, b]
  key: carrier
  valid: n >= 0
watermark: {strategy: bounded_out_of_orderness, bound: 1h, emit: {every: 200ms}}
window: {tumbling: 1h}
allowed_lateness: 1h
aggregates: {flights: count(*), miles: sum(miles)}
"""
ROWS = """
rows: |
  at, arrived, origin, carrier, miles, n
  2024-03-01T10:05:00Z, 2024-03-01T10:10:00Z, a, UA, 100, 1
  2024-03-01T10:50:00Z, 2024-03-01T11:00:00Z, b, UA, 50,  1
  2024-03-01T13:30:00Z, 2024-03-01T13:40:00Z, a, UA, 10,  1
  2024-03-01T13:30:00Z, 2024-03-01T13:41:00Z, b, UA, 10,  1
  2024-03-01T10:30:00Z, 2024-03-01T14:00:00Z, a, UA, 999, 1
  2024-03-01T13:31:00Z, 2024-03-01T14:00:00Z, c, UA, 1,   1
  2024-03-01T13:31:00Z, 2024-03-01T14:00:00Z, a, ,   1,   1
  2024-03-01T13:31:00Z, 2024-03-01T14:00:00Z, a, UA, 1,   -1
  tomorrow, 2024-03-01T14:00:00Z, a, UA, 1, 1
as_of: 2024-03-02T00:00:00Z
"""
EXPECT = """
expect:
  windows:
    - {window_start: 2024-03-01T10:00:00Z, carrier: UA, flights: 2, miles: 150, state: closed}
  quarantine:
    - {row: 5, reason: late}
    - {row: 6, reason: undeclared_channel}
    - {row: 7, reason: null_key}
    - {row: 8, reason: invalid}
    - {row: 9, reason: unparsable_event_time}
"""


def exit_code(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


@pytest.fixture
def tested(tmp_path, monkeypatch, capsys):
    """Gives the exit code and the output of the command over a pipeline and its test."""
    monkeypatch.setenv("COLUMNS", "160")

    def tested(test=ROWS + EXPECT, *options, pipeline=FLIGHTS):
        folder = tmp_path / "pipelines"
        folder.mkdir(exist_ok=True)
        (folder / "flights.yaml").write_text(pipeline)
        (folder / "flights.test.yaml").write_text(test)
        code = exit_code(["--pipelines", str(folder), "test", "flights", *options])
        out, err = capsys.readouterr()
        return code, out + err, folder

    return tested


def test_rows_that_give_the_windows_expected_pass(tested):
    code, said, _ = tested()
    assert (code, said.split()[0]) == (0, "passed")


@pytest.mark.parametrize(
    ("now", "was", "shows"),
    [
        ("miles: 151", "miles: 150", ["miles", "151", "150"]),
        ("carrier: AA", "carrier: UA", ["none", "this row"]),
        ("reason: no_window", "reason: late", ["reason", "no_window", "late"]),
        ("row: 4", "row: 5", ["row 4", "row 5"]),
        ("state: fired", "state: closed", ["fired", "closed"]),
    ],
)
def test_what_differs_is_shown_beside_what_came_and_exits_with_3(tested, now, was, shows):
    code, said, _ = tested(ROWS + EXPECT.replace(was, now))
    assert (code, said.split()[0]) == (3, "failed")
    assert all(one in said for one in shows)


def test_a_machine_gets_the_same_as_json(tested):
    code, said, _ = tested(ROWS + EXPECT.replace("miles: 150", "miles: 151"), "--json")
    found = json.loads(said)
    assert (code, found["passed"], found["rows"]) == (3, False, 9)
    (difference,) = found["differences"]
    assert difference["columns"] == {"miles": {"expected": 151, "came": 150}}
    assert found["windows"][0]["window_start"] == "2024-03-01T10:00:00Z"


def test_an_update_writes_what_came_and_then_it_passes(tested):
    code, _, folder = tested(ROWS + "expect:\n  windows: []\n", "--update")
    written = (folder / "flights.test.yaml").read_text()
    assert code == 0
    assert written.startswith(ROWS.splitlines(keepends=True)[0])
    assert tested(written)[0] == 0
    assert "reason: late" in written


def test_an_update_says_what_it_has_written_as_json_and_literally(tested, tmp_path):
    other = tmp_path / "p[x]y.yaml"
    other.write_text(ROWS + EXPECT)
    code, said, folder = tested(ROWS + EXPECT, "--update", "--json")
    written = str(folder / "flights.test.yaml")
    assert (code, json.loads(said)) == (0, {"pipeline": "flights", "written": written})
    assert f"written: {other}; read it" in tested(ROWS, "--update", "--file", str(other))[1]


def test_an_update_loses_no_comment_behind_what_is_expected(tested):
    code, said, folder = tested(ROWS.replace("as_of", EXPECT + "as_of"), "--update")
    assert code == 2
    assert "put it at the end" in said
    assert "as_of" in (folder / "flights.test.yaml").read_text()


def test_without_a_cut_off_all_counts_and_closing_fires_the_last_window(tested):
    expected = EXPECT.replace(
        "  quarantine:",
        "    - {window_start: 2024-03-01T13:00:00Z, carrier: UA, flights: 2}\n  quarantine:",
    )
    code, said, _ = tested(ROWS.replace("as_of: 2024-03-02T00:00:00Z", "close: true") + expected)
    assert code == 0, said


TIMES = "2024-03-01T10:05:00Z, 2024-03-01T10:10:00Z, a, UA"
LAST = "9999-12-31T23:30:00Z, 2024-03-01T10:10:00Z, a, UA, 1, 1"
OF_ALL_TIME = ["{global: {}}\ntrigger: {end_of_input: {}}", "{count: 2}\nfirings: true"]
HEAD = "rows: |\n  at, arrived, origin, carrier, miles, n\n"
NONE = "close: true\nexpect: {windows: [], quarantine: [{row: 1, reason: event_time_out_of_range}]}"


@pytest.mark.parametrize("window", OF_ALL_TIME)
def test_a_window_of_all_time_has_the_first_and_the_last_time_as_its_edges(tested, window):
    row = "{window_start: 0001-01-01T00:00:00Z, window_end: 9999-12-31T23:59:59.999Z, carrier: UA}"
    rows = f"{HEAD}  {TIMES}, 1, 1\n  {TIMES}, 1, 1\nclose: true\n"
    pipeline = FLIGHTS.replace("{tumbling: 1h}", window).replace("allowed_lateness: 1h\n", "")
    code, said, _ = tested(f"{rows}expect: {{windows: [{row}]}}", pipeline=pipeline)
    assert code == 0, said


@pytest.mark.parametrize(
    ("rules", "last", "says"),
    [
        ("trigger: {delta: 5, of: miles}", ", 1", "trigger.of: miles is null for a record; leave"),
        ("evictor: {delta: 5, of: miles}", ", 1", "evictor.of: miles is null for a record; leave"),
        ("evictor: {delta: 5, of: origin}", "1, 1", "evictor.of: is STRING; give a number"),
        ("evictor: {delta: 5, of: n > 0}", "1, 1", "evictor.of: is BOOLEAN; give a number"),
    ],
)
def test_a_value_that_is_no_number_to_compare_is_refused_as_in_a_run(tested, rules, last, says):
    code, said, _ = tested(
        f"{HEAD}  {TIMES}, {last}\n{NONE}", pipeline=f"{FLIGHTS}firings: true\n{rules}\n"
    )
    assert code == 2, said
    assert says in " ".join(said.split())


@pytest.mark.parametrize(("gap", "kind"), [("origin", "STRING"), ("miles", "DOUBLE")])
def test_a_gap_that_is_no_whole_number_is_refused_as_in_a_run(tested, gap, kind):
    pipeline = FLIGHTS.replace("tumbling: 1h", f"session: {gap}")
    code, said, _ = tested(f"{HEAD}  {TIMES}, 1.5, 1\n{NONE}", pipeline=pipeline)
    assert code == 2, said
    assert f"window.session: is {kind}; give a whole number of" in " ".join(said.split())


@pytest.mark.parametrize(
    ("window", "row"),
    [
        ("tumbling: 1h, offset: 15m", LAST),
        ("session: 1h", LAST),
        ("session: miles", f"{TIMES}, 999999999999999, 1"),
    ],
)
def test_a_row_with_a_window_outside_the_years_is_out_of_range_as_in_a_run(tested, window, row):
    pipeline = FLIGHTS.replace("tumbling: 1h", window)
    code, said, _ = tested(f"{HEAD}  {row}\n{NONE}", pipeline=pipeline)
    assert code == 0, said


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ("rows: []\nexpect: {windows: []}\n", "rows"),
        ("rows: 7\nexpect: {windows: []}\n", "not rows"),
        ("rows: |\n  a, b\n  1\nexpect: {windows: []}\n", "not rows"),
        ("rows: |\n  a\n  1\n", "expect: missing"),
        (ROWS + "expect: {windows: 7}\n", "not a list of rows"),
        (ROWS + "expect: {windows: [{carrier: UA}]}\n", "without window_start"),
        (ROWS + EXPECT.replace("miles: 150", "mils: 150"), "'mils' is not a column"),
        (ROWS + "as_of_: 1\n" + EXPECT, "as_of_"),
        ("rows: |\n  at\n  2024-03-01T10:05:00Z\nexpect: {windows: []}\n", "no column"),
    ],
)
def test_a_test_that_is_none_is_refused_by_its_place(tested, test, problem):
    code, said, _ = tested(test)
    assert code == 2
    assert problem in said


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (("sum(miles)", "median(miles)"), "median"),
        (("valid: n >= 0", "valid: rlike(carrier, 'U')"), "rlike"),
        (("event_time: at", "event_time: miles"), "a time belongs there"),
    ],
)
def test_a_pipeline_that_no_test_computes_is_refused_by_name(tested, change, names):
    code, said, _ = tested(pipeline=FLIGHTS.replace(*change))
    assert code == 2
    assert names in said


def test_a_pipeline_without_a_test_says_where_it_would_be(tested, tmp_path, capsys):
    tested()
    test = tmp_path / "pipelines" / "flights.test.yaml"
    test.unlink()
    assert exit_code(["--pipelines", str(test.parent), "test", "flights"]) == 2
    assert "flights.test.yaml: there is no such test" in capsys.readouterr().err


def test_a_test_is_no_pipeline_of_the_folder(tested):
    from strandline.spec.loading import spec_files

    _, _, folder = tested()
    assert [path.name for path in spec_files(folder)] == ["flights.yaml"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("7", 7),
        ("-7", -7),
        ("007", "007"),
        ("1.50", 1.5),
        ("1e5", "1e5"),
        ("true", True),
        ("True", "True"),
        ("UA", "UA"),
    ],
)
def test_a_cell_is_read_by_its_looks(text, value):
    from strandline.trial.file import cell

    assert cell(text) == value
    assert type(cell(text)) is type(value)
