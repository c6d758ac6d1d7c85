"""A finding stays until its data is mended, evaluated again or acknowledged."""

from __future__ import annotations

import pytest
from found import ONE, every, named, shown
from lakes import Line, a_spec, at, instant, land

from strandline.errors import InputError, NoRunsError
from strandline.model.intervals import DAY_MS, TimeRange
from strandline.pipeline.manage.acknowledge import acknowledge
from strandline.pipeline.request.request import Request
from strandline.pipeline.views.report import write_report
from strandline.pipeline.views.runs import run_of, runs_of
from strandline.pipeline.views.status import status_of

pytestmark = pytest.mark.spark

GAPS_ALONE = {**ONE, "quality__gaps": "warn", "quality__max_malformed_share": None}
HALF_HOURS = every(30, "1 00:01", "6")


def in_two_hours(row) -> bool:
    return at("2 10:00") <= row["happened_at"] < at("2 12:20")


LARGE = "expect_column_values_to_be_between"


def with_a_limit(**changes):
    limit = {"type": LARGE, "column": "total", "max_value": 9, "severity": "warning"}
    rules = ONE | {"quality__gaps": "warn", "quality__expectations": [limit]}
    return a_spec(**rules | changes)


def test_what_an_earlier_run_has_found_stands_until_it_is_mended_or_evaluated_again(
    spark, tmp_path
):
    """Gaps and malformed rows, until their rows have landed; values, until all windows are anew."""

    def is_broken(row) -> bool:
        return row["happened_at"].day == 2 and row["happened_at"].minute == 0

    missing = [row for row in HALF_HOURS if in_two_hours(row)]
    kept = [
        row | {"happened_at": None} if is_broken(row) else row
        for row in HALF_HOURS
        if row not in missing
    ]
    large = [row | {"amount": 1 + 9 * (row["happened_at"] == at("2 16:30"))} for row in kept]
    land(tmp_path, large)
    line = Line(spark, tmp_path, with_a_limit(), audited=True)
    line.advance("2")
    assert shown(line) == {}
    found = line.advance("3").run_id
    gaps = "2 gaps: 2024-03-02T10:15:00Z to 2024-03-02T12:15:00Z (2 slots)"
    malformed = "48.8 % of rows malformed (21 of 43: null_event_time 21) of arrival day 2024-03-02"

    def assert_all_stand() -> None:
        told = shown(line)
        assert {*told} == {"gaps", "max_malformed_share", LARGE}
        assert told["gaps"] == gaps
        assert told["max_malformed_share"].startswith(malformed)
        assert "1 of " in told[LARGE]

    assert_all_stand()
    assert line.advance("4").findings == []
    assert_all_stand()
    status = status_of(line.spec, line.lake)
    assert status["state"].startswith("WARNING: ")
    assert {one["run_id"] for one in status["findings"]} == {found}
    report = write_report(line.spec, line.lake, tmp_path / "report", data_docs=False)
    assert report["findings"] == status["findings"]
    # of each rule the file as it is decides
    without = with_a_limit(quality__gaps="allow", quality__expectations=[])
    assert {*shown(line.of(without))} == {"max_malformed_share"}
    loose = with_a_limit(quality__max_malformed_share=0.5)
    assert "max_malformed_share" not in shown(line.of(loose))
    strict = status_of(with_a_limit(quality__gaps="fail"), line.lake)
    assert strict["state"].startswith(f"CRITICAL: {gaps}")

    land(tmp_path, kept)
    line.backfill("2", "3", as_of="4")
    assert LARGE in shown(line)  # the run's other windows may be too large as well
    first_day = TimeRange(instant("1") - DAY_MS, instant("2"))
    line.run(Request("backfill", first_day, as_of_ms=instant("4")))
    assert {*shown(line)} == {"gaps", "max_malformed_share", "owed"}
    land(tmp_path, HALF_HOURS)
    assert line.advance("5").findings == []
    assert shown(line) == {}


def test_an_unusual_day_stands_until_the_rest_of_it_has_landed(spark, tmp_path):
    """It is unusual once four days of its weekday are known."""
    weeks = [row for day in (1, 8, 15, 22) for row in every(60, f"{day} 00:01", f"{day} 10:00")]
    last = every(60, "29 00:01", "29 10:00")
    land(tmp_path, [*weeks, *last[:3]])
    line = Line(spark, tmp_path, a_spec(**ONE, quality__fresh_within=None), audited=True)
    assert "volume" not in named(line.advance("29"))
    said = named(line.advance("30"))["volume"]
    assert line.advance("31").findings == []
    assert shown(line)["volume"] == said
    assert said.startswith("2024-03-29: 3 records, usually 10 (7 to 13)")
    land(tmp_path, last[3:], mode="append")
    line.advance("31")
    assert shown(line) == {}


def test_what_stays_as_it_is_is_acknowledged_and_what_is_found_later_stands_again(spark, tmp_path):
    with pytest.raises(NoRunsError):
        acknowledge(a_spec(**GAPS_ALONE), Line(spark, tmp_path, a_spec()).lake, [], reason="none")
    fourth = at("4 10:00"), at("4 12:20")
    kept = [
        row
        for row in HALF_HOURS
        if not in_two_hours(row) and not fourth[0] <= row["happened_at"] < fourth[1]
    ]
    land(tmp_path, kept)
    line = Line(spark, tmp_path, a_spec(**GAPS_ALONE), audited=True)
    line.advance("4")
    before = line.versions()
    shown_only = acknowledge(line.spec, line.lake, [], reason="sensor was off", dry_run=True)
    assert [one["name"] for one in shown_only["acknowledged"]] == ["gaps"]
    assert shown_only["run_id"] is None
    assert "gaps" in shown(line)
    with pytest.raises(InputError, match="no finding of this name can be acknowledged now"):
        acknowledge(line.spec, line.lake, ["volume"], reason="Christmas")
    done = acknowledge(line.spec, line.lake, ["gaps"], reason="off", requested_by="me")
    assert done["acknowledged"] == shown_only["acknowledged"]
    assert shown(line) == {}
    assert status_of(line.spec, line.lake)["last_run"]["kind"] == "advance"
    (newest, *_) = runs_of(line.spec, line.lake)
    assert (newest["run_id"], newest["status"]) == (done["run_id"], "acknowledged")
    assert line.versions() == before
    assert acknowledge(line.spec, line.lake, [], reason="again")["run_id"] is None
    by_hand = line.backfill("2", "3", as_of="4")
    assert (by_hand.gaps, by_hand.findings) == (2, [])  # it lists them, and they are known
    assert shown(line) == {}
    line.advance("5")
    assert shown(line)["gaps"].startswith("2 gaps: 2024-03-04T10:15:00Z to 2024-03-04T12:15:00Z")


def test_a_gap_that_appears_between_acknowledged_ones_is_none_of_them(spark, tmp_path):
    """Nor does one at the edge of a day come back as the slot beside it is closed."""

    def is_off(row) -> bool:
        happened = row["happened_at"]
        evening = at("2 18:00") <= happened < at("2 20:20") or at("2 21:00") <= happened < at("3")
        return in_two_hours(row) or evening

    kept = [row for row in HALF_HOURS if not is_off(row)]
    land(tmp_path, kept)
    line = Line(spark, tmp_path, a_spec(**GAPS_ALONE, quality__fresh_within=None), audited=True)
    line.advance("3")
    assert shown(line)["gaps"].startswith("4 gaps")
    line.advance("4")
    assert shown(line)["gaps"].startswith("6 gaps")
    step = acknowledge(line.spec, line.lake, [], reason="sensor was off")["run_id"]
    assert run_of(line.spec, line.lake, step)["acknowledged"]["gaps"].startswith("6 gaps")
    between = at("2 14:00"), at("2 16:20")
    land(tmp_path, [row for row in kept if not between[0] <= row["happened_at"] < between[1]])
    line.advance("5", accept_loss="they were wrong")
    assert shown(line)["gaps"].startswith("2 gaps: 2024-03-02T14:15:00Z to 2024-03-02T16:15:00Z")


def test_rows_without_an_arrival_day_and_a_run_by_hand_over_other_days_are_not_forgotten(
    spark, tmp_path
):
    dateless = [row | {"arrived_at": None, "arrived_on": None} for row in HALF_HOURS[:40]]
    land(tmp_path, [*dateless, *HALF_HOURS[40:90]], partition_by=[])
    by_instant = ONE | {"source__arrival_date": ...}
    line = Line(spark, tmp_path, a_spec(**by_instant), audited=True)
    line.advance("3")
    assert "null_arrival 40" in shown(line)["max_malformed_share"]
    line.advance("4")
    assert "null_arrival 40" in shown(line)["max_malformed_share"]
    late = [row | {"arrived_at": at("5 12:00"), "arrived_on": at("5").date()} for row in HALF_HOURS]
    broken = [row | {"device": None} for row in late[:40]]
    land(tmp_path / "hand", [*broken, *late[40:90]])
    hand = Line(spark, tmp_path / "hand", a_spec(**ONE), audited=True)
    found = hand.backfill("1", "3", as_of="6")
    assert "max_malformed_share" in [one.name for one in found.findings]
    assert "max_malformed_share" in shown(hand)
