"""A pipeline is proposed from any table: what it guesses, how sure it is, and what it refuses."""

from __future__ import annotations

import csv
import datetime as dt
import json
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from strandline.cli.main import app
from strandline.errors import InputError
from strandline.proposal.formats import form_of
from strandline.spec import load_spec

HAPPENED = [
    dt.datetime(2024, 3, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=7 * n) for n in range(600)
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, with the lake and the pipelines below it."""
    monkeypatch.chdir(tmp_path)
    for name in ("LAKE", "PIPELINES", "ENGINE"):
        monkeypatch.delenv(f"STRANDLINE_{name}", raising=False)
    return tmp_path


def init(*arguments):
    """What `init --json` says."""
    done = CliRunner().invoke(app, ["init", *map(str, arguments), "--no-advise", "--json"])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return json.loads(done.stdout)


def write_csv(path, rows):
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def guessed(found, key):
    return next(one for one in found["guesses"] if one["key"] == key)


FORMS = {
    "german": ("%d.%m.%Y %H:%M", "try_to_timestamp(`seen`, 'd.M.yyyy H:mm')"),
    "american": ("%m/%d/%Y %I:%M:%S %p", "try_to_timestamp(`seen`, 'M/d/yyyy h:mm:ss a')"),
    "iso with a zone": ("%Y-%m-%dT%H:%M:%S+02:00", "seen"),
    "iso without": ("%Y-%m-%d %H:%M:%S", "seen"),
    "year first": ("%Y/%m/%d %H:%M", "try_to_timestamp(`seen`, 'yyyy/M/d H:mm')"),
    "a month's name first": ("%b %d %Y %H:%M", "try_to_timestamp(`seen`, 'MMM d yyyy H:mm')"),
    "a month's name": ("%d %b %Y %H:%M", "try_to_timestamp(`seen`, 'd MMM yyyy H:mm')"),
}


@pytest.mark.parametrize(("written", "expression"), FORMS.values(), ids=FORMS)
def test_times_are_read_from_texts_of_any_form(here, written, expression):
    late = [at + dt.timedelta(days=15) for at in HAPPENED]
    write_csv("t.csv", [{"seen": at.strftime(written), "v": 1.5} for at in late])
    found = init("--from", "t.csv", "--land")
    assert guessed(found, "source.event_time")["value"] == expression
    assert guessed(found, "source.event_time")["certainty"] == "likely"
    table = DeltaTable("lake/landing/t").to_pyarrow_table()
    shift = dt.timedelta(hours=2) if "+02:00" in written else dt.timedelta(0)
    assert set(table["arrival_date"].to_pylist()) == {(at - shift).date() for at in late}


@pytest.mark.parametrize(
    ("many", "function"), [(1, "seconds"), (10**3, "millis"), (10**6, "micros")]
)
def test_numbers_since_1970_are_read_by_their_size(here, many, function):
    rows = [{"ts": int(at.timestamp() * many), "v": n} for n, at in enumerate(HAPPENED)]
    write_csv("t.csv", rows)
    found = init("--from", "t.csv", "--land")
    assert guessed(found, "source.event_time")["value"] == f"timestamp_{function}(`ts`)"
    days = DeltaTable("lake/landing/t").to_pyarrow_table()["arrival_date"].to_pylist()
    assert set(days) == {at.date() for at in HAPPENED}


def test_a_date_whose_day_and_month_could_be_either_is_left_to_a_person(here):
    days = [dt.date(2024, month, day) for month in range(1, 13) for day in range(1, 12)]
    write_csv("t.csv", [{"day": day.strftime("%d/%m/%Y"), "v": 1} for day in days])
    found = init("--from", "t.csv")
    assert guessed(found, "source.event_time")["certainty"] == "TODO"
    assert any("which number is the day" in problem for problem in found["problems"])
    assert "# TODO No value of day shows" in Path("pipelines/t.yaml").read_text("utf-8")


def test_texts_of_two_forms_are_no_times():
    assert form_of(["13/02/2024", "02/13/2024"]) is None
    assert form_of(["2024-02-13"] * 5 + ["soon"] * 5) is None
    assert form_of(["2024-02-13"] * 95 + ["soon"] * 5) is not None


def arrivals(minutes_late):
    rows = [
        {
            "when": at,
            "seen": at + dt.timedelta(minutes=minutes_late(n)),
            "site": "ab"[n % 2],
            "v": n,
        }
        for n, at in enumerate(HAPPENED)
    ]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: row["seen"]))


def test_the_later_of_two_times_is_the_arrival_and_its_disorder_is_waited_for(here):
    pq.write_table(arrivals(lambda n: 200 if n % 200 == 7 else 1 + n * 7 % 41), "t.parquet")
    found = init("--from", "t.parquet", "--land")
    assert guessed(found, "source.event_time")["value"] == "when"
    assert guessed(found, "source.arrival_time")["value"] == "seen"
    spec = load_spec(Path("pipelines/t.yaml"))
    assert 0 < spec.watermark.bound_ms <= 45 * 60_000
    assert spec.total_lateness_ms >= 180 * 60_000
    assert spec.source.max_ahead == 3_600_000
    assert found["choices"][-1]["share_lost"] == 0


def test_without_an_arrival_it_says_what_that_means(here):
    write_csv("t.csv", [{"when": at.isoformat(), "v": 1} for at in HAPPENED])
    found = init("--from", "t.csv")
    assert guessed(found, "source.arrival_time")["certainty"] == "TODO"
    assert found["problems"][0].startswith("No lateness can be known without an arrival time")
    assert not found["landed"]
    assert "give --land" in found["notes"][0]


def test_a_table_is_read_as_it_lies_and_its_partition_is_recognised(here):
    table = arrivals(lambda n: 5)
    day = table["seen"].cast(pa.date32())
    write_deltalake("lake/landing/some", table.append_column("day", day), partition_by=["day"])
    found = init("--from", "landing/some")
    assert found["landed"]
    assert guessed(found, "source.arrival_date")["value"] == "day"
    assert load_spec(Path("pipelines/some.yaml")).source.table == "landing/some"


def test_a_partition_that_is_nearly_the_day_of_arrival_is_named_with_its_share(here):
    """One stray row was enough for no word about it, beside runs that read the whole table."""
    table = arrivals(lambda n: 5)
    days = table["seen"].cast(pa.date32()).to_pylist()
    strays = [day + dt.timedelta(days=1) if n % 20 == 0 else day for n, day in enumerate(days)]
    table = table.append_column("day", pa.array(strays, pa.date32()))
    write_deltalake("lake/landing/some", table, partition_by=["day"])
    guess = guessed(init("--from", "landing/some"), "source.arrival_date")
    assert guess["value"] == "null"
    assert "day is it in 95.0% of the rows" in guess["why"]


def test_landing_again_lands_nothing_twice_and_a_new_file_alone(here):
    Path("in").mkdir()
    for n in range(2):
        write_csv(f"in/{n}.csv", [{"when": at.isoformat(), "v": n} for at in HAPPENED])
    assert "landed 2 files" in init("--from", "in", "--name", "t", "--land")["notes"][0]
    again = init("--from", "in", "--name", "t", "--land", "--force")
    assert "landed 0 files" in again["notes"][0]
    write_csv("in/2.csv", [{"when": at.isoformat(), "v": 2} for at in HAPPENED])
    more = init("--from", "in", "--name", "t", "--land", "--force")
    assert "landed 1 file in" in more["notes"][0]
    assert DeltaTable("lake/landing/t").to_pyarrow_table().num_rows == 3 * len(HAPPENED)


@pytest.mark.parametrize(
    "name", ['a "b"', "a`b", "a.b", "größe", "日時", "a'b", "no", "a: b #", "1st"]
)
def test_a_column_may_have_any_name(here, name):
    rows = [
        {name: at.strftime("%d.%m.%Y %H:%M"), f"{name} key": "xy"[n % 2], f"{name}_v": n / 2}
        for n, at in enumerate(at + dt.timedelta(days=15) for at in HAPPENED)
    ]
    write_csv("t.csv", rows)
    init("--from", "t.csv", "--land")
    load_spec(Path("pipelines/t.yaml"))
    done = CliRunner().invoke(app, ["validate", "t"])
    assert done.exit_code == 0, done.stdout


def test_json_lines_an_array_and_packed_files_are_read_alike(here):
    import gzip

    rows = [{"when": at.isoformat(), "site": "ab"[n % 2], "v": n} for n, at in enumerate(HAPPENED)]
    Path("a.json").write_text(json.dumps(rows), "utf-8")
    Path("b.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    write_csv("c.csv", rows)
    with gzip.open("c.csv.gz", "wb") as file:
        file.write(Path("c.csv").read_bytes())
    found = [
        init("--from", name, "--land")
        for name in ("a.json", "b.jsonl", "c.csv", "c.csv.gz")
        if name != "c.csv.gz"
    ] + [init("--from", "c.csv.gz", "--name", "d", "--land")]
    assert [[g["value"] for g in one["guesses"][1:]] for one in found] == [
        [g["value"] for g in found[0]["guesses"][1:]]
    ] * 4
    tables = [DeltaTable(f"lake/landing/{n}").to_pyarrow_table() for n in "abcd"]
    assert {table.num_rows for table in tables} == {len(HAPPENED)}


def test_lines_of_csv_may_end_with_a_carriage_return_alone(here):
    lines = ["when,v", *(f"{at.isoformat()},{n}" for n, at in enumerate(HAPPENED))]
    Path("t.csv").write_bytes("\r".join(lines).encode())
    init("--from", "t.csv", "--land")
    landed = DeltaTable("lake/landing/t").to_pyarrow_table()
    assert sorted(landed["v"].to_pylist()) == [*range(len(HAPPENED))]


def test_codes_with_a_zero_in_front_stay_texts(here):
    write_csv(
        "t.csv", [{"when": at.isoformat(), "zip": f"0{n % 9}"} for n, at in enumerate(HAPPENED)]
    )
    init("--from", "t.csv", "--land")
    landed = DeltaTable("lake/landing/t").to_pyarrow_table()
    assert set(landed["zip"].to_pylist()) == {f"0{n}" for n in range(9)}


def refusal(*arguments):
    with pytest.raises(InputError) as refused:
        init(*arguments)
    return str(refused.value)


def test_what_cannot_be_proposed_is_refused_with_the_way_out(here):
    Path("empty.csv").write_text("when,v\n", "utf-8")
    assert "has no rows" in refusal("--from", "empty.csv")
    Path("nothing.csv").write_text("", "utf-8")
    assert "has no rows" in refusal("--from", "nothing.csv")
    write_csv("timeless.csv", [{"a": n, "b": "x"} for n in range(50)])
    assert "no column reads as a time; there are a, b" in refusal("--from", "timeless.csv")
    write_csv("unfilled.csv", [{"when": "", "b": "x"} for n in range(50)])
    assert "there are when (without a value), b" in refusal("--from", "unfilled.csv")
    assert "there is no nowhere" in refusal("--from", "nowhere")
    Path("a.txt").write_text("a", "utf-8")
    assert "is of no kind that is known" in refusal("--from", "a.txt")
    Path("bad.parquet").write_text("not at all", "utf-8")
    assert "bad.parquet: cannot be read" in refusal("--from", "bad.parquet")
    write_csv("t.csv", [{"when": at.isoformat(), "v": 1} for at in HAPPENED])
    assert "is not a name of a pipeline" in refusal("--from", "t.csv", "--name", "../t")
    assert not Path("pipelines").exists()


def test_a_pipeline_file_is_never_written_over_unless_asked(here):
    write_csv("t.csv", [{"when": at.isoformat(), "v": 1} for at in HAPPENED])
    init("--from", "t.csv")
    Path("pipelines/t.yaml").write_text("mine", "utf-8")
    assert "is there already" in refusal("--from", "t.csv")
    assert Path("pipelines/t.yaml").read_text("utf-8") == "mine"
    init("--from", "t.csv", "--force")
    Path("pipelines/t.yaml").rename("pipelines/other.yaml")
    assert "is defined by other.yaml" in refusal("--from", "t.csv")


def test_a_large_table_is_sampled_and_not_held(here):
    import tracemalloc

    rows = 1_000_000
    at = pa.array(range(1_700_000_000, 1_700_000_000 + rows), pa.int64())
    table = pa.table({"ts": at, "v": pa.array(range(rows), pa.float64())})
    write_deltalake("lake/landing/large", table)
    began, before = time.process_time(), pa.total_allocated_bytes()
    tracemalloc.start()
    found = init("--from", "landing/large")
    assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    tracemalloc.stop()
    assert pa.total_allocated_bytes() - before < 50 * 2**20
    assert time.process_time() - began < 5
    assert "1,000,000 rows" in guessed(found, "source.table")["why"]


def test_what_is_refused_has_landed_nothing(here):
    write_csv("x.csv", [{"seen": "2024-03-01T00:00:00Z", "v": 1}])
    with pytest.raises(InputError, match="also the folder of the lake"):
        init("--from", "x.csv", "--name", "landing", "--land")
    assert not (here / "lake").exists()


def test_a_single_row_is_one_row_in_a_window_and_a_comment_stands_apart_from_its_value(here):
    write_csv("x.csv", [{"seen": "2024/03/01 10:20", "v": 1}])
    window = guessed(init("--from", "x.csv", "--name", "x", "--land"), "window")
    assert window["why"] == "about 1 row in each, over 0s"
    text = (here / "pipelines" / "x.yaml").read_text("utf-8")
    assert not [line for line in text.splitlines() if '"#' in line]


def test_a_number_with_a_decimal_comma_is_a_measure_and_thousands_are_none(here):
    rows = "".join(f"{at:%d.%m.%Y %H:%M};20,{n % 9};1,000\n" for n, at in enumerate(HAPPENED))
    Path("x.csv").write_text("seen;degrees;code\n" + rows, "utf-8")
    init("--from", "x.csv", "--name", "x", "--land")
    aggregates = load_spec(here / "pipelines" / "x.yaml").aggregates
    assert aggregates["avg_degrees"] == "avg(CAST(replace(`degrees`, ',', '.') AS DOUBLE))"
    assert len(aggregates) == 2


def test_an_average_of_decimals_is_one_that_each_engine_computes(here):
    pq.write_table(
        pa.table({"seen": HAPPENED, "v": [Decimal("1.25")] * len(HAPPENED)}), "x.parquet"
    )
    init("--from", "x.parquet", "--name", "x", "--land")
    aggregates = load_spec(here / "pipelines" / "x.yaml").aggregates
    assert aggregates["avg_v"] == "avg(CAST(`v` AS DOUBLE))"


IN_40_DAYS = [(at + dt.timedelta(40)).date() for at in HAPPENED]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("arrival_date", HAPPENED),
        ("Arrival_Date", HAPPENED),
        ("arrival_date", IN_40_DAYS),
        ("arrival_date", [str(day) + "!" for day in IN_40_DAYS]),
    ],
)
def test_a_column_of_the_partitions_name_that_is_not_the_day_of_arrival_is_not_the_partition(
    here, name, values
):
    day = ["x"] * len(HAPPENED)
    pq.write_table(pa.table({"seen": HAPPENED, name: values, "arrival_day": day}), "x.parquet")
    found = init("--from", "x.parquet", "--name", "x", "--land")
    assert guessed(found, "source.arrival_date")["value"] == "arrival_day_2"
    landed = DeltaTable("lake/landing/x")
    assert landed.metadata().partition_columns == ["arrival_day_2"]
    days = landed.to_pyarrow_table()["arrival_day_2"].to_pylist()
    assert {*days} == {at.date() for at in HAPPENED}
    init("--from", "x.parquet", "--name", "x", "--land", "--force")
    assert DeltaTable("lake/landing/x").version() == landed.version()


def test_files_of_a_table_with_another_partition_are_refused_with_both(here):
    rows = pa.table({"seen": HAPPENED, "arrival_date": [str(at) for at in HAPPENED]})
    pq.write_table(rows, "x.parquet")
    write_deltalake("lake/landing/x", rows.slice(0, 9), partition_by=["arrival_date"])
    both = "partitioned by arrival_date lies there, and these files are landed by arrival_day;"
    with pytest.raises(InputError, match=both):
        init("--from", "x.parquet", "--name", "x", "--land")


@pytest.mark.parametrize(
    ("behind", "zone"),
    [(" CET", "CET"), (" Europe/Berlin", "Europe/Berlin"), ("Z[Europe/Berlin]", "Europe/Berlin")],
)
def test_a_time_with_the_name_of_a_zone_is_refused_by_that_name(here, behind, zone):
    write_csv("x.csv", [{"seen": f"{at:%Y-%m-%d %H:%M:%S}{behind}"} for at in HAPPENED])
    assert f"seen is a time with the name of a zone ({zone}), which is not read" in refusal(
        "--from", "x.csv"
    )


def test_a_half_of_a_day_is_no_zone(here):
    write_csv("x.csv", [{"seen": f"{at:%Y-%m-%d %I:%M:%S %p}"} for at in HAPPENED])
    assert "zone" not in refusal("--from", "x.csv")


def test_a_time_inside_a_nested_column_is_named_where_another_is_proposed(here):
    lines = [json.dumps({"meta": {"seen": f"{at}"}, "received": f"{at}"}) for at in HAPPENED]
    Path("x.jsonl").write_text("\n".join(lines), "utf-8")
    problems = init("--from", "x.jsonl", "--name", "x", "--land")["problems"]
    assert problems[0].startswith("meta.seen is a time inside a nested column")
