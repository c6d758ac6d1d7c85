"""What `runs publish` refuses, and the way out that it names; told without Spark."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
import yaml
from lakes import SPEC as CONTENT
from lakes import a_record, a_spec, instant, land

from strandline.cli import runs
from strandline.cli.groups import EngineOptions, Places
from strandline.errors import AuditFailedError, InputError
from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.ledger.to_publish import ToPublish
from strandline.lake.store.lake import Lake
from strandline.model.books import Book
from strandline.model.intervals import TimeRange
from strandline.pipeline.audit.verdict import Verdict
from strandline.pipeline.publish.publish import _missing_after, changes_of
from strandline.pipeline.publish.publish_prepared import require_publishable
from strandline.pipeline.request.context import Journal
from strandline.quality.audit.result import Audit, AuditResult

if TYPE_CHECKING:
    from strandline.pipeline.request.context import Context

SPEC = a_spec()
A_DAY = TimeRange(instant("2"), instant("3"))
PREPARED = Entry(
    "r-1",
    1,
    "prepared",
    "backfill",
    A_DAY,
    horizon_ms=instant("3"),
    spec_fingerprint=SPEC.spec_fingerprint,
    timeline_fingerprint=SPEC.timeline_fingerprint,
    landing_version=0,
    base=3,
    publish=ToPublish(key=("device",), parts=("windows",)),
    touched_from_ms=instant("1 20:00"),
    position=5,
)
REJECTED = replace(PREPARED, step="rejected", message="too late")
AGAIN = r"--start 2024-03-02T00:00:00Z --end 2024-03-03T00:00:00Z --prepare"


class Kept:
    """A landing table, and a run that keeps its staging."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lake, self.spec = folder, Lake.at(str(folder)), SPEC
        self.staging = folder / "meter" / "_staging" / "r-1"
        self.staging.mkdir(parents=True)
        (self.staging / "part-0.parquet").touch()
        land(folder, [a_record("2 10:00", "2 10:00")])

    def asked(self, *entries: Entry, accept: str | None = None) -> Entry:
        log = LandingLog.of(self.lake, self.spec)
        store, state = self.lake.pipeline("meter"), PipelineState.of(entries)
        return require_publishable(self.spec, store, state, "r-1", accept, log)


@pytest.fixture
def kept(tmp_path):
    return Kept(tmp_path)


def another(start: str, end: str, position: int, **more: object) -> Entry:
    within = TimeRange(instant(start), instant(end))
    return Entry("other", 1, "published", "advance", within, position=position, **more)


def test_a_prepared_run_may_be_published_while_nothing_has_come_between(kept):
    assert kept.asked(another("2", "3", 3), PREPARED, another("3", "4", 6)) == PREPARED
    land(kept.folder, [a_record("3 10:00", "3 10:00")], mode="append")  # behind its horizon
    assert kept.asked(PREPARED) == PREPARED


@pytest.mark.parametrize(("start", "end"), [("2 23:00", "4"), ("1", "1 21:00")])
def test_one_that_others_have_published_into_is_stale(kept, start, end):
    with pytest.raises(
        InputError, match=rf"out of date: run other has published.*{AGAIN}"
    ) as caught:
        kept.asked(PREPARED, another(start, end, 6))
    assert caught.value.exit_code == 2


def test_one_that_may_hold_rows_which_were_erased_since_is_stale(kept):
    erased = Entry("erase-6", 1, "erased", "erase", position=6)
    with pytest.raises(InputError, match=rf"out of date: erase-6 has since erased rows.*{AGAIN}"):
        kept.asked(PREPARED, erased)


def test_one_is_stale_after_a_publish_that_touched_its_slots_from_a_later_range(kept):
    with pytest.raises(InputError, match="out of date"):
        kept.asked(PREPARED, another("3", "4", 6, touched_from_ms=instant("2 20:00")))


def test_one_whose_landing_has_changed_below_its_horizon_is_stale(kept):
    land(kept.folder, [a_record("2 11:00", "2 11:00")], mode="append")
    with pytest.raises(InputError, match=rf"out of date: landing/meter has other files.*{AGAIN}"):
        kept.asked(PREPARED)


def test_one_whose_landing_was_created_anew_is_stale(kept):
    """Of the same version and as many rows, it is another table all the same."""
    prepared = replace(PREPARED, landing_id=LandingLog.of(kept.lake, SPEC).table_id)
    assert kept.asked(prepared) == prepared
    shutil.rmtree(kept.folder / "landing/meter")
    land(kept.folder, [a_record("2 10:00", "2 10:00", amount=1001)])
    with pytest.raises(InputError, match=rf"out of date: landing/meter was created again.*{AGAIN}"):
        kept.asked(prepared)


@pytest.mark.parametrize("edited", [a_spec(allowed_lateness="0s"), a_spec(firings=True)])
def test_one_that_was_made_by_other_rules_is_stale(kept, edited):
    kept.spec = edited
    with pytest.raises(InputError, match=rf"date: the pipeline's rules have changed.*{AGAIN}"):
        kept.asked(PREPARED)


def test_one_whose_staging_is_gone_is_refused(kept):
    shutil.rmtree(kept.staging)
    with pytest.raises(InputError, match=rf"its staging is missing; .*{AGAIN}"):
        kept.asked(PREPARED)


def test_one_that_was_dropped_is_refused(kept):
    with pytest.raises(InputError, match=rf"nothing that could be published: dropped.*{AGAIN}"):
        kept.asked(PREPARED, replace(PREPARED, step="dropped"))


def test_the_way_out_has_all_that_the_run_was_asked_for(kept):
    dropped = replace(PREPARED, closed=True, reopened=True, overrides={"allowed_lateness": "3h"})
    again = "--allowed-lateness 3h --reason … --close --reopen --prepare"
    with pytest.raises(InputError, match=f"prepare it again: strandline backfill .*{again}"):
        kept.asked(dropped, replace(dropped, step="dropped", position=6))


def test_the_way_out_is_the_command_of_the_run_itself(kept):
    """Its data cut-off was missing, so that another run would have been prepared."""
    because = ["--as-of", "2024-03-03T00:00:00Z", "--reason", "it is right"]
    command = ["backfill", *AGAIN.split(), *because]
    dropped = replace(PREPARED, publish=replace(PREPARED.to_publish, command=command))
    again = f"{AGAIN} --as-of 2024-03-03T00:00:00Z --reason 'it is right'"
    with pytest.raises(InputError, match=f"prepare it again: strandline backfill meter {again}"):
        kept.asked(dropped, replace(dropped, step="dropped", position=6))


@pytest.mark.parametrize(
    ("command", "again"),
    [
        (("advance", "--to", "2024-03-03"), "strandline advance meter --to 2024-03-03"),
        # what publishes by itself is not prepared; it may be the rebuild of a scheduled run
        (("backfill", "--close"), "strandline backfill meter --close"),
    ],
)
def test_a_run_that_was_not_prepared_is_run_again(kept, command, again):
    with pytest.raises(InputError, match=f"REASON, or run it again: {again}"):
        kept.asked(replace(REJECTED, publish=ToPublish(command=command)))


def test_a_rejected_one_is_published_only_where_somebody_says_why(kept):
    with pytest.raises(InputError, match=r"was rejected: too late; .*--accept REASON"):
        kept.asked(REJECTED)
    assert kept.asked(REJECTED, accept="it is right") == REJECTED
    with pytest.raises(InputError, match="out of date"):
        kept.asked(REJECTED, another("2", "3", 6), accept="it is right")


OFF = Book("range", 63, {"accepted": 56, "late": 0})


def test_one_whose_books_are_off_is_published_by_nobody(kept):
    """Neither without a reason nor with one: it is a defect, or what it reads has changed."""
    rejected = replace(REJECTED, books=[OFF])
    for accept in (None, "it is right"):
        with pytest.raises(InputError, match=r"63 ≠ accepted 56.*; .*never published") as caught:
            kept.asked(rejected, accept=accept)
        assert "--accept" not in str(caught.value)
    even = replace(OFF, total=56)
    assert kept.asked(replace(REJECTED, books=[even]), accept="it is right").books == [even]


@pytest.mark.parametrize(("books", "offered"), [([OFF], False), ([], True)])
def test_an_audit_offers_to_accept_it_unless_its_books_are_off(books, offered):
    said = AuditResult("expect_something", "windows", "critical", success=False, figures="no")
    ctx = cast(
        "Context", SimpleNamespace(spec=SPEC, run_id="r-1", dry_run=False, append_step=lambda _: 0)
    )
    journal = Journal(ctx, replace(PREPARED, books=books), lambda step: None)
    with pytest.raises(AuditFailedError, match=r"expect_something: no") as caught:
        Verdict(Audit((said,)), "see it").reject(ctx, journal)
    assert ("--accept" in str(caught.value)) == offered


def test_a_rejected_one_of_an_old_ledger_has_made_no_changes_to_publish(kept):
    with pytest.raises(InputError, match=rf"keeps nothing that could be published.*{AGAIN}"):
        kept.asked(replace(REJECTED, publish=None), accept="it is right")


def test_there_is_nothing_to_accept_of_one_that_was_not_rejected(kept):
    with pytest.raises(InputError, match="nothing to accept"):
        kept.asked(PREPARED, accept="it is right")


def test_one_that_has_published_is_told_so_whatever_came_after(kept):
    done = replace(PREPARED, step="published", publish=None)
    assert kept.asked(PREPARED, done, another("2", "3", 6)) == done


def test_one_that_died_while_it_published_is_to_be_ended(kept):
    begun = replace(PREPARED, step="publishing")
    assert kept.asked(PREPARED, begun, another("2", "3", 6)) == begun


def test_a_run_that_is_not_there_is_not_published(kept):
    with pytest.raises(InputError, match=r"no such run.*strandline runs list meter"):
        kept.asked(replace(PREPARED, run_id="r-2"))


def test_one_that_has_published_is_shown_again_without_a_session(kept, monkeypatch, capsys):
    """Airflow tries a task once more whose process has died after the publish."""
    published = replace(PREPARED, step="published", diff={"windows": {"inserted": 3}})
    ledger = Ledger(kept.lake.pipeline("meter"))
    for entry in (PREPARED, published):
        ledger.append(replace(entry, position=0), datetime.now(UTC))
    (kept.folder / "meter.yaml").write_text(yaml.safe_dump(CONTENT))

    def no_session(*_: object, **__: object) -> None:
        raise AssertionError("a session is opened")

    monkeypatch.setattr(runs, "application", no_session)
    at = Places(str(kept.folder), str(kept.folder))
    runs.runs_publish.__wrapped__("meter", "r-1", as_json=True, on=EngineOptions(), at=at)
    said = json.loads(capsys.readouterr().out)
    assert (said["run_id"], said["status"], said["diff"]) == ("r-1", "published", published.diff)


def test_a_run_that_publishes_late_keeps_the_days_that_others_have_found_missing_meanwhile():
    first, second = date(2024, 3, 1), date(2024, 3, 2)
    known = Entry("a-1", 1, "observed", "advance", lost=[], position=2)
    found = Entry("b-1", 1, "published", "advance", lost=[first, second], position=5)
    slow = Entry("c-1", 1, "audited", "advance", lost=[], base=4, position=6)
    accepting = replace(slow, publish=ToPublish(accepted=(second,)))
    state = PipelineState.of([known, found, slow])
    assert _missing_after(slow, state) == [first, second]
    assert _missing_after(accepting, state) == [first]
    assert _missing_after(replace(slow, base=5), state) == []


def test_a_step_without_staged_tables_names_the_command_that_drops_the_run():
    ctx = cast("Context", SimpleNamespace(place=lambda name: f"meter: {name}", spec=SPEC))
    with pytest.raises(InputError, match="lists no staged tables") as refused:
        changes_of(ctx, replace(PREPARED, publish=None))
    assert refused.value.way_out == "strandline runs drop meter r-1 --reason TEXT, and run again"
