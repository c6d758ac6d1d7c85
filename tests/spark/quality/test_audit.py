"""The audit on staged tables, each wrong in one way: what it finds, and what it says about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from unittest.mock import patch
from urllib.parse import unquote

import lakes
import pandas as pd
import pyarrow as pa
import pytest
from engines import ENGINE
from joined import JOIN, PAIRED
from odd_paths import ALL_SIGNS

from strandline.engine.frames import from_arrow
from strandline.errors import AuditFailedError, InputError
from strandline.model.books import Book
from strandline.model.intervals import instant_of
from strandline.quality.audit.data_docs import build_data_docs
from strandline.quality.audit.result import Audit, AuditResult
from strandline.quality.audit.run import AuditInput, audit, validate_expectations
from strandline.quality.audit.wording import Gaps
from strandline.quality.completeness import completeness as rows_of_slots
from strandline.spec import parse_spec

pytestmark = pytest.mark.spark

HOUR = timedelta(hours=1)
START = datetime(2013, 1, 5, tzinfo=UTC)
INSTANT = pa.timestamp("us", tz="UTC")
WINDOWS_SCHEMA = pa.schema(
    {
        "origin": pa.string(),
        "carrier": pa.string(),
        "window_start": INSTANT,
        "window_end": INSTANT,
        "departures": pa.int64(),
        "mean_delay_min": pa.float64(),
        "state": pa.string(),
        "fired_at": INSTANT,
        "closed_at": INSTANT,
    }
)
BETWEEN = "expect_column_values_to_be_between"


def a_spec(window=None, **quality):
    return parse_spec(
        {
            "pipeline": "flights",
            "source": {
                "table": "landing/flights",
                "arrival_time": "landed_at",
                "event_time": "departed_at",
                "key": ["origin", "carrier"],
            },
            "watermark": {"strategy": "ascending"},
            "window": window or {"tumbling": "1h"},
            "aggregates": {"departures": "count(*)", "mean_delay_min": "avg(dep_delay)"},
            "quality": {"gaps": "allow", **quality},
        },
        origin="flights.yaml",
    )


def a_window(hour, carrier="UA", **changed):
    start = START + hour * HOUR
    return {
        "origin": "EWR",
        "carrier": carrier,
        "window_start": start,
        "window_end": start + HOUR,
        "departures": 5,
        "mean_delay_min": 2.5,
        "state": "closed",
        "fired_at": start + 4 * HOUR,
        "closed_at": start + 6 * HOUR,
        **changed,
    }


def a_slot(hour, **changed):
    start = START + hour * HOUR
    return {
        "slot_start": start,
        "slot_end": start + HOUR,
        "state": "closed",
        "gap": False,
        "fired_at": start + 4 * HOUR,
        "closed_at": start + 6 * HOUR,
        "on_time": 10,
        "late": 0,
        "channels_heard": ["EWR", "JFK"],
        **changed,
    }


WINDOWS = [a_window(0), a_window(0, "DL"), a_window(1)]
SLOTS = [
    a_slot(0),
    a_slot(1),
    a_slot(2, state="fired", closed_at=pd.NaT),
    a_slot(3, state="open", fired_at=pd.NaT, closed_at=pd.NaT),
]
BOOKS = [
    Book("arrival day 2013-01-05", 40, {"malformed": 2, "well_formed": 38}),
    Book("range", 38, {"accepted": 37, "late": 1, "no_window": 0}),
]
OWN = {
    "expect_books_to_balance",
    "expect_no_open_slot_before_a_fired_one",
    "expect_slot_states_to_agree_with_crossings",
    "expect_slots_of_the_range_to_be_present",
    "expect_slots_to_be_unique",
    "expect_window_states_to_agree_with_crossings",
    "expect_windows_to_be_unique",
}


@pytest.fixture
def audited(spark):
    def run(windows=WINDOWS, slots=SLOTS, spec=None, context_folder=None, **changed) -> Audit:
        completeness = changed.pop("completeness", None)
        if completeness is None:
            completeness = pd.DataFrame(slots, columns=list(a_slot(0)))
        named = [instant_of(slot["slot_start"]) for slot in slots if not slot["gap"]]
        figures = {"slots_expected": named, "gaps": Gaps(0), "late": 1, "accepted": 37, **changed}
        schema = figures.pop("schema", WINDOWS_SCHEMA)
        results = from_arrow(spark, pa.Table.from_pylist(windows, schema=schema))
        staged = AuditInput(
            **{"results": results, "completeness": completeness, "books": BOOKS, **figures}
        )
        return audit(spec or a_spec(), staged, run_id="1f0c", context_folder=context_folder)

    return run


def only_failure(result: Audit) -> AuditResult:
    assert len(result.failures) == 1, result.failures
    return result.failures[0]


def test_a_sound_run_meets_every_expectation(audited):
    result = audited()
    assert not result.blocked
    assert result.failures == ()
    assert {one.expectation for one in result.results} == OWN
    assert {one.severity for one in result.results} == {"critical"}
    books = next(one for one in result.results if one.table == "books")
    assert books.figures == "2 books balance"


def test_an_empty_range_meets_every_expectation(audited):
    spec = a_spec(gaps="fail", max_late_share=0.02)
    result = audited(windows=[], slots=[], spec=spec, late=0, accepted=0, books=[])
    assert result.failures == ()


def test_a_book_that_does_not_balance_blocks_and_is_told_in_numbers(audited):
    off = Book("range", 39, {"accepted": 37, "late": 1, "no_window": 0})
    result = audited(books=[BOOKS[0], off])
    assert result.blocked
    failure = only_failure(result)
    assert (failure.expectation, failure.table) == ("expect_books_to_balance", "books")
    assert failure.figures == (
        "1 of 2 books off: range: 39 ≠ accepted 37 + late 1 + no_window 0 (1 unaccounted for)"
    )


def test_a_window_that_stands_twice_blocks_and_is_named(audited):
    failure = only_failure(audited(windows=[*WINDOWS, a_window(1)]))
    assert failure.expectation == "expect_windows_to_be_unique"
    assert failure.figures == (
        "1 offending row: origin=EWR carrier=UA window_start=2013-01-05T01:00:00Z "
        "window_end=2013-01-05T02:00:00Z copies=2"
    )


def pairs_of(spec):
    """One pair twice, in a later window once more; and the table's columns."""
    pair = {"device": "d1", "left_record_id": "a", "right_record_id": "b", "pair": 1}
    kinds = {"pair": pa.int64(), "pair_date": pa.date32()} | dict.fromkeys(
        ("pair_ts", "window_start", "window_end"), INSTANT
    )
    names = spec.tables["pairs"].keys
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in names])
    return [pair, pair, pair | {"window_start": START}], schema


def test_a_pair_that_stands_twice_blocks(audited):
    spec = parse_spec(JOIN, origin="near.yaml")
    (pair, again, _), schema = pairs_of(spec)
    failure = only_failure(audited(windows=[pair, again], spec=spec, schema=schema))
    assert failure.expectation == "expect_pairs_to_be_unique"
    assert failure.figures.startswith("1 offending row: ")


def test_an_expectation_of_a_pipelines_own_judges_its_pairs(audited):
    asked = {"table": "pairs", "severity": "warning", "type": BETWEEN, "max_value": 0}
    columns = ("pair", "left_amount")  # the second one is of the landing: unknown before
    expectations = [asked | {"column": name} for name in columns]
    spec = parse_spec(JOIN | {"quality": {"expectations": expectations}}, origin="near.yaml")
    validate_expectations(spec)
    (pair, *_), schema = pairs_of(spec)
    schema = schema.append(pa.field("left_amount", pa.int64()))
    found = audited(windows=[pair | {"left_amount": 7}], spec=spec, schema=schema)
    failures = [one for one in found.results if not one.success]
    assert [(one.table, one.severity) for one in failures] == [("pairs", "warning")] * 2
    assert "left_amount=7" in failures[1].figures


def test_a_pair_that_stands_twice_in_one_of_its_windows_blocks(spark, audited):
    spec = parse_spec(PAIRED, origin="paired.yaml")
    rows, schema = pairs_of(spec)
    pairs = from_arrow(spark, pa.Table.from_pylist(rows, schema=schema))
    names = [name for name in WINDOWS_SCHEMA.names if name not in {"origin", "carrier"}]
    device = pa.schema([("device", pa.string()), *(WINDOWS_SCHEMA.field(name) for name in names)])
    found = audited(windows=[a_window(0)], spec=spec, schema=device, pairs=pairs)
    failure = only_failure(found)
    assert (failure.table, failure.expectation) == ("pairs", "expect_pairs_to_be_unique")
    assert "copies=2" in failure.figures


def test_windows_whose_state_contradicts_their_crossings_block(audited):
    contradictions = [
        {"state": "open"},
        {"state": None},
        {"state": "fired"},
        {"closed_at": None},
        {"fired_at": None},
        {"closed_at": START},
    ]
    wrong = [a_window(2 + number, **changed) for number, changed in enumerate(contradictions)]
    failure = only_failure(audited(windows=[*WINDOWS, *wrong]))
    assert failure.expectation == "expect_window_states_to_agree_with_crossings"
    assert failure.figures.startswith(
        "6 offending rows: origin=EWR carrier=UA window_start=2013-01-05T02:00:00Z "
        "window_end=2013-01-05T03:00:00Z state=open fired_at=2013-01-05T06:00:00Z "
        "closed_at=2013-01-05T08:00:00Z; origin=EWR"
    )


def test_slots_whose_state_contradicts_their_crossings_block(audited):
    contradictions = [
        {"state": "elsewhere"},
        {"state": None},
        {"state": "fired"},
        {"closed_at": pd.NaT},
        {"fired_at": pd.NaT},
        {"closed_at": START},
    ]
    wrong = [a_slot(2 + number, **changed) for number, changed in enumerate(contradictions)]
    failure = only_failure(audited(slots=[a_slot(0), a_slot(1), *wrong]))
    assert failure.expectation == "expect_slot_states_to_agree_with_crossings"
    assert failure.figures.startswith(
        "6 of 8 rows: slot_start=2013-01-05T02:00:00Z state=elsewhere "
        "fired_at=2013-01-05T06:00:00Z closed_at=2013-01-05T08:00:00Z; slot_start="
    )


def test_slots_that_grow_from_one_start_are_named_by_their_ends_too(audited):
    spec = a_spec(window={"cumulative": "2h", "step": "1h"})
    slots = [a_slot(0), a_slot(0, slot_end=START + 2 * HOUR, state="elsewhere")]
    failure = only_failure(audited(windows=[], slots=slots, spec=spec))
    assert failure.figures.startswith(
        "1 of 2 rows: slot_start=2013-01-05T00:00:00Z slot_end=2013-01-05T02:00:00Z state=elsewhere"
    )


def test_an_open_slot_before_a_fired_one_blocks(audited):
    not_fired = {"state": "open", "fired_at": pd.NaT, "closed_at": pd.NaT}
    failure = only_failure(audited(slots=[a_slot(0, **not_fired), a_slot(1), a_slot(2)]))
    assert failure.expectation == "expect_no_open_slot_before_a_fired_one"
    assert "slot_start=2013-01-05T00:00:00Z" in failure.figures


def test_what_the_end_of_the_input_fired_says_nothing_about_the_slots_before_it(audited):
    """`--close` of a part of history leaves earlier slots open, and later runs still pass."""
    not_fired = {"state": "open", "fired_at": pd.NaT, "closed_at": pd.NaT}
    slots = [a_slot(0, **not_fired), a_slot(1)]
    frame = pd.DataFrame(slots, columns=list(a_slot(0))).assign(input_ended=[False, True])
    assert audited(windows=[], slots=slots, completeness=frame).failures == ()


def test_slots_that_are_all_open_are_in_order(audited):
    not_fired = {"state": "open", "fired_at": pd.NaT, "closed_at": pd.NaT}
    assert audited(windows=[], slots=[a_slot(hour, **not_fired) for hour in (0, 1)]).failures == ()


def test_slots_that_are_missing_or_there_as_a_gap_only_block_and_are_named(audited):
    named = [instant_of(START + hour * HOUR) for hour in range(4)]
    slots = [a_slot(0), a_slot(1), a_slot(2, gap=True)]
    failure = only_failure(audited(slots=slots, slots_expected=named))
    assert failure.expectation == "expect_slots_of_the_range_to_be_present"
    assert failure.figures == (
        "2 of 4 slots in which records were seen; missing: "
        "2013-01-05T02:00:00Z, 2013-01-05T03:00:00Z"
    )


@pytest.mark.parametrize("window", [{"tumbling": "1h", "offset": "15m"}, {"session": "1h"}])
def test_a_run_that_loses_a_slot_on_its_way_publishes_nothing(spark, tmp_path, window):
    """The timeline's day map knows that there were records."""

    def all_but_the_first(slots, *more, **counts):
        return rows_of_slots(slots.iloc[1:], *more, **counts)

    lakes.land(tmp_path, lakes.a_week(days=2))
    line = lakes.Line(spark, tmp_path, lakes.a_spec(window=window), audited=True)
    with (
        patch("strandline.pipeline.rebuild.piece.completeness", all_but_the_first),
        pytest.raises(
            AuditFailedError, match="slots in which records were seen; missing: 2024-03-01T0"
        ),
    ):
        line.advance("3")
    assert line.rows("windows") == []


def test_the_slot_before_a_record_between_two_windows_is_no_gap(spark, tmp_path):
    """It stands once, with that record."""
    records = [
        lakes.a_record("1 08:05", "1 08:05"),
        lakes.a_record("1 10:40", "1 10:40"),  # between two windows
        lakes.a_record("1 13:05", "1 13:05"),
    ]
    lakes.land(tmp_path, records)
    spec = lakes.a_spec(window={"sliding": "20m", "every": "1h"}, quality__gaps="warn")
    line = lakes.Line(spark, tmp_path, spec, audited=True)
    assert line.advance("2").status == "published"
    slots = {row["slot_start"].hour: row for row in line.rows("completeness")}
    assert len(slots) == len(line.rows("completeness"))
    assert [hour for hour, row in slots.items() if row["gap"]] == [9, 11, 12]
    assert slots[10]["no_window"] == 1


def test_a_slot_that_stands_twice_blocks(audited):
    failure = only_failure(audited(slots=[a_slot(0), a_slot(0)]))
    assert failure.expectation == "expect_slots_to_be_unique"


def test_too_large_a_late_share_blocks(audited):
    spec = a_spec(max_late_share=0.02)
    failure = only_failure(audited(spec=spec, late=20_001, accepted=979_999))
    assert failure.expectation == "expect_late_share_to_be_at_most"
    assert failure.severity == "critical"
    assert failure.figures == "late share 0.020001 (20,001 of 1,000,000) > 0.02"


def test_a_late_share_that_equals_the_limit_passes(audited):
    result = audited(spec=a_spec(max_late_share=0.02), late=2, accepted=98)
    share = next(one for one in result.results if "late_share" in one.expectation)
    assert share.success
    assert share.figures == "late share 0.02 (2 of 100) ≤ 0.02"


@pytest.mark.parametrize(
    ("gaps", "severity", "counted", "figures"),
    [
        ("warn", "warning", 1, "1 gap: 2013-01-05T02:00:00Z"),
        # those that are not listed count as well
        (
            *("fail", "critical", 1_000_001),
            "1,000,001 gaps: 2013-01-05T02:00:00Z; and 1,000,000 more, up to 2013-01-05T03:00:00Z",
        ),
    ],
)
def test_gaps_are_judged_as_the_pipeline_says(audited, gaps, severity, counted, figures):
    empty = a_slot(2, gap=True)
    found = Gaps.of(pd.DataFrame([empty]), counted)
    result = audited(spec=a_spec(gaps=gaps), slots=[a_slot(0), a_slot(1), empty], gaps=found)
    failure = only_failure(result)
    assert (failure.expectation, failure.severity) == ("expect_no_gaps", severity)
    assert failure.figures == figures
    assert result.blocked == (gaps == "fail")


def test_the_declared_expectations_are_held_against_their_tables(audited):
    spec = a_spec(
        expectations=[
            {"type": BETWEEN, "column": "departures", "min_value": 6, "severity": "warning"},
            {"type": "expect_column_mean_to_be_between", "column": "departures", "max_value": 5},
            {"type": BETWEEN, "table": "completeness", "column": "on_time", "min_value": 10},
            {"type": "expect_column_max_to_be_between", "table": "completeness",
             "column": "late", "min_value": 1, "severity": "info"},
        ]
    )  # fmt: skip
    result = audited(spec=spec, windows=[*WINDOWS, a_window(2, departures=None)])
    found = {
        (one.table, one.expectation): one for one in result.results if one.expectation not in OWN
    }
    assert len(found) == 4
    assert not result.blocked

    warning = found["windows", BETWEEN]
    assert (warning.severity, warning.success) == ("warning", False)
    assert warning.figures.startswith(
        "column departures, min_value 6: 3 of 4 rows: origin=EWR carrier=UA "
        "window_start=2013-01-05T00:00:00Z departures=5; "
    )
    mean = found["windows", "expect_column_mean_to_be_between"]
    assert mean.success
    assert mean.figures == "column departures, max_value 5: observed 5"
    assert found["completeness", BETWEEN].figures == "column on_time, min_value 10: 4 rows"
    info = found["completeness", "expect_column_max_to_be_between"]
    assert (info.severity, info.success) == ("info", False)


def test_an_expectation_that_cannot_be_evaluated_has_failed(audited):
    mean_of_text = {"type": "expect_column_sum_to_be_between", "column": "carrier", "min_value": 0}
    result = audited(spec=a_spec(expectations=[mean_of_text]))
    assert result.blocked
    assert "could not be evaluated: " in only_failure(result).figures


@pytest.mark.skipif(ENGINE != "spark", reason="only Spark itself says how many jobs it ran")
def test_the_audit_of_windows_takes_few_spark_jobs(audited, spark):
    spark.sparkContext.setJobGroup("the audit", "counted")
    audited()
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("the audit")
    # an aggregate is two under adaptive execution
    assert len(jobs) <= 4


def test_validation_results_are_kept_and_rendered_as_data_docs(audited, tmp_path):
    folder = tmp_path / ALL_SIGNS  # $HOME once stood for a folder beside it
    context_folder = folder / "gx"
    # asks SciPy to judge, and Altair to draw: both are loaded for those who do
    as_usual = {"type": "expect_column_kl_divergence_to_be_less_than", "column": "state",
                "table": "completeness", "threshold": 0.1, "severity": "info",
                "partition_object": {"values": ["closed", "fired", "open"],
                                     "weights": [0.5, 0.25, 0.25]}}  # fmt: skip
    result = audited(spec=a_spec(expectations=[as_usual]), context_folder=context_folder)
    assert result.failures == ()
    index = build_data_docs(context_folder, folder / "data_docs")
    assert index == folder / "data_docs" / "index.html"
    assert [*tmp_path.iterdir()] == [folder]
    pages = "".join(
        page.read_text("utf-8") for page in index.parent.rglob("*.html") if page != index
    )
    assert "1f0c" in index.read_text("utf-8")
    assert "Every record stands in its book exactly once." in pages
    assert "No key has two rows for the same window." in pages
    assert "Kullback-Leibler" in pages


class Asked(HTMLParser):
    """What a page loads or links to."""

    def __init__(self, page) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        assert tag != "script"
        self.places |= {value for name, value in attrs if name in {"src", "href"}}


def test_data_docs_load_nothing_link_to_what_is_there_and_call_a_warning_a_warning(
    audited, tmp_path
):
    warns = {"type": "expect_column_values_to_be_in_set", "column": "carrier",
             "value_set": ["none"], "severity": "warning"}  # fmt: skip
    audited(spec=a_spec(expectations=[warns]), context_folder=tmp_path / "gx")
    index = build_data_docs(tmp_path / "gx", tmp_path / "data_docs")
    pages = [*index.parent.rglob("*.html")]
    assert len(pages) > 3
    assert {*pages} == {path for path in index.parent.rglob("*") if path.is_file()}
    for page in pages:
        assert "://" not in page.read_text("utf-8")
        for place in Asked(page).places:
            assert place.startswith("#") or (page.parent / unquote(place)).is_file(), place
    linked = {index.parent / unquote(place) for place in Asked(index).places}
    assert linked == {*pages} - {index}
    shown = index.read_text("utf-8")
    assert (shown.count("<td>warning<td>"), shown.count("<td>failed<td>")) == (1, 0)
    (of_windows,) = (page for page in linked if "windows" in page.name)
    assert "warning" in of_windows.read_text("utf-8")
    assert "Failed</" not in of_windows.read_text("utf-8")
    # a page whose result upkeep has removed is gone with it
    (stored,) = (tmp_path / "gx").rglob("windows*.json")
    stored.unlink()
    build_data_docs(tmp_path / "gx", tmp_path / "data_docs")
    assert not of_windows.exists()
    assert "windows" not in index.read_text("utf-8")
    # a page that cannot be written names why, and not how Great Expectations came there
    of_books = next(page for page in linked if "books" in page.name)
    of_books.unlink()
    of_books.mkdir()
    with pytest.raises(OSError, match=r'^IsADirectoryError: "[^\n]*"$'):
        build_data_docs(tmp_path / "gx", tmp_path / "data_docs")


def test_values_that_an_audit_found_are_text_in_the_data_docs(audited, tmp_path):
    hostile = "<script>document.title='owned'</script>"
    only_known = {"type": "expect_column_values_to_be_in_set", "column": "carrier",
                  "value_set": ["DL"], "severity": "info"}  # fmt: skip
    audited(
        windows=[a_window(0, hostile), a_window(0, hostile)],
        spec=a_spec(expectations=[only_known]),
        context_folder=tmp_path / "gx",
    )
    docs = build_data_docs(tmp_path / "gx", tmp_path / "data_docs").parent
    pages = "".join(page.read_text("utf-8") for page in docs.rglob("*.html"))
    assert "&lt;script&gt;document.title" in pages
    assert "<script>document.title" not in pages


def test_data_docs_of_no_audit_yet_are_an_empty_page(tmp_path):
    assert build_data_docs(tmp_path / "gx", tmp_path / "data_docs").is_file()


@pytest.mark.parametrize(
    ("declared", "place", "problem"),
    [
        ({"type": "expect_column_values_to_be_betwixt"}, "0.type", "is not an expectation"),
        ({"type": BETWEEN, "column": "departure", "min_value": 1}, "0.column", "'departure'"),
        ({"type": BETWEEN, "column": "departures", "least": 1}, "0", "least: extra fields"),
        ({"type": BETWEEN, "column": "departures"}, "0", "min_value and max_value"),
        ({"type": BETWEEN, "min_value": 1}, "0", "column: field required"),
        ({"type": BETWEEN, "column": "departures", "min_value": 1, "catch_exceptions": True},
         "0.catch_exceptions", "not an argument"),
        ({"type": "expect_column_values_to_match_like_pattern", "column": "carrier",
          "like_pattern": "U%"}, "0.type", "cannot check the table windows"),
        ({"type": BETWEEN, "table": "completeness", "column": "departures", "min_value": 1},
         "0.column", "not a column of completeness"),
        ({"type": "expect_compound_columns_to_be_unique", "column_list": ["origin", "tail"]},
         "0.column_list", "'tail'"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_refused_with_its_place(declared, place, problem):
    with pytest.raises(InputError) as refused:
        validate_expectations(a_spec(expectations=[declared]))
    assert refused.value.place == f"flights: quality.expectations.{place}"
    assert problem in refused.value.problem
    assert refused.value.way_out


def test_sound_declarations_are_accepted():
    validate_expectations(
        a_spec(
            expectations=[
                {"type": BETWEEN, "column": "departures", "min_value": 1},
                {"type": "expect_column_values_to_not_be_null", "column": "window_start"},
                {"type": "expect_table_row_count_to_be_between", "table": "completeness",
                 "max_value": 24},
            ]
        )
    )  # fmt: skip
