"""A preview says what the run then does: window by window, reason by reason, day by day."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from lakes import Line, a_spec, a_week, land

from strandline.cli.preview import parts
from strandline.lake.publish import batches

pytestmark = pytest.mark.spark
KEY = ("window_start", "window_end", "device")


@pytest.fixture(scope="module")
def before(spark, tmp_path_factory):
    """The week as of its fifth day."""
    line = Line(spark, tmp_path_factory.mktemp("preview"), a_spec())
    land(line.folder, a_week())
    line.backfill("1", "5", as_of="5")
    return line


def an_accepted_row():
    """One of the second day that came at once, and stays by the dearer rule."""
    of_the_2nd = [row for row in a_week() if row["arrived_on"].day == 2 and row["amount"] > 9]
    known = (row for row in of_the_2nd if row["happened_at"] and row["arrived_at"])
    return min(known, key=lambda row: abs(row["arrived_at"] - row["happened_at"]))


def windows(line):
    return {tuple(row[name] for name in KEY): row for row in line.rows("windows")}


def test_a_preview_says_of_each_window_and_row_what_the_run_then_does(
    before, tmp_path, monkeypatch
):
    """Rows that land late add and change; a dearer rule takes some away."""
    asked = {"as_of": "5", "allow_removals": True}
    line = before.copy(tmp_path).of(a_spec(source__valid="amount > 9"))
    land(line.folder, [{**an_accepted_row(), "amount": 10**6}], mode="append")
    stand = windows(line)
    in_quarantine = Counter(row["reason"] for row in line.rows("quarantine"))
    previewed = line.backfill("1", "5", dry_run=True, **asked)
    preview = json.loads(json.dumps(previewed.preview))
    with monkeypatch.context() as patch:
        patch.setattr(batches, "BYTES_AT_ONCE", 9_000)
        in_pieces = line.backfill("1", "5", dry_run=True, **asked)
    assert in_any_order(in_pieces.preview) == in_any_order(preview)
    done = line.backfill("1", "5", **asked)
    assert done.diff == previewed.diff == in_pieces.diff
    assert done.preview is None
    nothing = line.backfill("1", "5", dry_run=True, **asked).preview
    assert nothing["days"] == nothing["shown"] == [*parts(nothing)] == []
    will = windows(line)

    assert preview["windows"] == {
        "added": len(will.keys() - stand.keys()),
        "changed": previewed.diff["windows"]["update"],
        "removed": len(stand.keys() - will.keys()),
    }
    assert preview["windows"]["removed"] > 0 and preview["windows"]["changed"] > 9
    assert preview["not_shown"] == {"added": 0, "changed": 0, "removed": 0}
    for change in preview["shown"]:
        (device,) = change["key"].values()
        (key,) = {k for k in {*stand, *will} if told(k[0]) == change["start"] and k[2] == device}
        for side, rows in (("before", stand), ("after", will)):
            expected = rows.get(key)
            assert (change[side] is None) == (expected is None)
            for name in ("total", "mean", "records", "state") if expected else ():
                assert change[side][name] == expected[name]
    changed = [change for change in preview["shown"] if change["how"] == "changed"]
    assert changed[0]["after"]["total"] > 10**6 > changed[0]["before"]["total"]
    differ = [c for c in changed if c["before"]["records"] != c["after"]["records"]]
    assert 0 < len(differ) <= preview["changed_in_values"] < len(changed)

    then = Counter(row["reason"] for row in line.rows("quarantine"))
    gained, lost = (Counter(preview["quarantine"][what]) for what in ("gained", "lost"))
    assert gained["invalid"] > 0
    gained.subtract(lost)
    assert {**gained} == {reason: then[reason] - in_quarantine[reason] for reason in {*gained}}
    gained = sum(preview["quarantine"]["gained"].values())
    assert sum(day["quarantine"]["gained"] for day in preview["days"]) == gained
    for how, count in preview["windows"].items():
        assert sum(day["windows"][how] for day in preview["days"]) == count
    assert any("windows that change" in part for part in parts(preview) if isinstance(part, str))


def in_any_order(preview):
    """A preview with the windows that it shows in one order, as JSON has them."""
    preview = json.loads(json.dumps(preview))
    return preview | {"shown": sorted(preview["shown"], key=str)}


def told(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_as_many_windows_are_shown_as_are_asked_for_and_the_others_are_counted(before):
    line = before.of(a_spec(aggregates__largest="max(amount)"))
    preview = line.backfill("1", "5", as_of="5", dry_run=True, preview_rows=2).preview
    assert len(preview["shown"]) == len(preview["days"]) == 2
    assert preview["other_days"]["days"] == 1
    told = [*preview["days"], preview["other_days"]]
    assert sum(day["windows"]["changed"] for day in told) == preview["windows"]["changed"]
    assert preview["not_shown"]["changed"] == preview["windows"]["changed"] - 2 > 0
    for change in preview["shown"]:
        assert change["before"]["largest"] is None
        assert change["after"]["largest"] is not None


def test_what_is_replaced_by_other_windows_is_counted_by_day_and_not_shown_as_the_new_rows(before):
    published = Counter(str(row["window_date"]) for row in before.rows("windows"))
    line = before.of(a_spec(window={"tumbling": "30m"}))
    asked = {"as_of": "5", "recreate": True, "reason": "half hours"}
    preview = line.backfill("1", "5", dry_run=True, **asked).preview
    assert {change["how"] for change in preview["shown"]} == {"added"}
    assert preview["not_shown"]["removed"] == preview["windows"]["removed"] == published.total()
    removed = {day["day"]: day["windows"]["removed"] for day in preview["days"]}
    assert {day: count for day, count in removed.items() if count} == published
