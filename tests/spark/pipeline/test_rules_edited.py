"""Rules that are edited between runs: what was open is built, what was malformed comes back."""

from __future__ import annotations

import pytest
from changes import of_days, some_days
from lakes import Line, a_record, a_spec, at, instant, land
from replayed import assert_books_balance, assert_told_by_replay

from strandline.model.intervals import TimeRange
from strandline.pipeline.views.status import status_of

pytestmark = pytest.mark.spark

DAYS = some_days(5)
ALONE = [{**row, "source": "a"} for row in DAYS]
"""The second channel is silent."""

# -------------------------------------------------------------------------- what had stayed open


@pytest.mark.parametrize(
    ("rules", "edited"),
    [
        ({}, {"source__channels": ["a"]}),
        (
            {"source__channels": ["a"], "window": {"session": "3h"}, "watermark__bound": "6d"},
            {"source__channels": ["a"], "window": {"session": "3h"}},
        ),
    ],
    ids=["a channel goes", "a bound of sessions is cut"],
)
def test_windows_that_had_stayed_open_are_built_by_the_rules_that_let_them_close(
    spark, tmp_path, rules, edited
):
    line = Line(spark, tmp_path, a_spec(**rules))
    land(tmp_path, of_days(ALONE, 1, 2, 3))
    line.advance("4")
    assert line.rows("windows") == []
    assert {row["state"] for row in line.rows("completeness") if not row["gap"]} == {"open"}

    line = line.of(a_spec(**edited))
    if "source__channels" not in rules:  # else the days have not been observed by the new rules
        told = status_of(line.spec, line.lake)
        assert told["open_behind_watermark"] == told["open_by_other_rules"] > 0
        assert not [one for one in told["findings"] if one["severity"] == "critical"]
    land(tmp_path, of_days(ALONE, 4), mode="append")
    line.advance("5")
    assert_told_by_replay(line, of_days(ALONE, 1, 2, 3, 4), "5")
    assert_books_balance(line)
    told = status_of(line.spec, line.lake)
    assert told["open_behind_watermark"] == 0
    assert told["slots"]["closed"] > 0
    assert told["frontier"] == "2024-03-05T00:00:00Z"


# ----------------------------------------------------------------------------- what had been closed


@pytest.mark.parametrize("window", [{"tumbling": "1h"}, {"session": "30m"}], ids=["grid", "gap"])
def test_a_slot_counts_a_late_record_and_stays_closed_by_the_rules_of_its_windows(
    spark, tmp_path, window
):
    """It was said to have closed as it fired, by edited rules, beside records accepted since.

    And the gaps beside it were listed again with the edited rules.
    """
    rules = {"source__channels": ["a"], "window": window}
    line = Line(spark, tmp_path, a_spec(**rules, allowed_lateness="2h"))
    land(tmp_path, [a_record(f"{day} {hour}:00", f"{day} {hour}:00") for day in (1, 2)
                    for hour in range(10, 20)])  # fmt: skip
    line.advance("3")

    def slots():
        rows = line.rows("completeness")
        return {row["slot_start"]: row for row in rows if row["slot_start"] < at("2 10:00")}

    before, line = slots(), line.of(a_spec(**rules, allowed_lateness="0s"))
    assert before[at("1 20:00")]["gap"]
    land(
        tmp_path,
        [a_record("3 10:00", "3 10:00"), a_record("3 10:05", "1 19:10")],
        mode="append",
    )
    line.advance("4")
    last = at("1 19:00")
    assert slots() == before | {last: before[last] | {"late": 1}}
    # the ledger says from which slot on the run has touched the tables
    published = line.ledger[-1]
    assert published.touched == TimeRange(instant("1 19:00"), published.range.end_ms)
    assert published.range.start_ms > published.touched.start_ms


# --------------------------------------------------------------------------- malformed by old rules


def test_what_an_edit_makes_well_formed_stays_in_quarantine_until_its_range_is_rebuilt(
    spark, tmp_path
):
    only_a = {"source__channels": ["a"]}
    rules = {
        "source__valid": "amount < 95",
        "source__deduplicate": {"columns": ["amount"], "within": "10m of arrival"},
    }
    rows = [
        a_record(f"{day} {hour}:05", f"{day} {hour}:00", amount=day * 10 + hour, position=day)
        for day in (1, 2, 3)
        for hour in (10, 12, 14, 18)
    ]
    rows += [
        a_record(f"1 10:0{minute}", f"1 10:0{minute - 2}", amount=amount, position=50 + minute)
        for minute, amount in ((6, 20), (7, 97), (8, 20), (9, 98))
    ]
    reasons = ["duplicate", "invalid"] * 2
    line = Line(spark, tmp_path, a_spec(**only_a, **rules))
    land(tmp_path, of_days(rows, 1, 2))
    line.advance("3")
    assert sorted(row["reason"] for row in line.rows("quarantine")) == sorted(reasons)

    line = line.of(a_spec(**only_a))
    land(tmp_path, of_days(rows, 3), mode="append")
    line.advance("4")
    assert sorted(row["reason"] for row in line.rows("quarantine")) == sorted(reasons)
    assert_books_balance(line)

    before = line.versions()
    rebuilt = line.backfill("1", "2", as_of="4")
    assert rebuilt.diff["quarantine"] == {"insert": 0, "update": 0, "delete": 4}
    assert rebuilt.diff["windows"]["update"]
    after = line.versions()
    assert after["quarantine"] == before["quarantine"] + 1  # one commit, in the publish
    assert_told_by_replay(line, rows, "4")
    assert_books_balance(line)
