"""The documents of runs that the commands print, and that page and report are made of. No JVM."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from deltalake import DeltaTable
from many_days import a_lake_of
from meter import HALF_DAYS as SPEC
from meter import HALF_DAYS_FILE as FILE
from run_documents import a_run

from strandline.cli import show, words
from strandline.cli.main import main
from strandline.lake.ledger.entry import UPKEEP, Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.model.intervals import DAY_MS, TimeRange
from strandline.pipeline.request.driver import INTERRUPTED
from strandline.pipeline.views.changes import changes_of
from strandline.pipeline.views.report import write_report
from strandline.pipeline.views.runs import run_line, run_of, runs_for_report, runs_of
from strandline.pipeline.views.status import status_of
from strandline.quality.report.runs import MOST_RUNS

DIFF = {"windows": {"insert": 2, "update": 0, "delete": 0}}
FAILED = [{"expectation": "e", "table": "t", "severity": "warning", "success": False,
           "figures": "1 of 2"}]  # fmt: skip


def a_state(*steps: Entry) -> PipelineState:
    return PipelineState.of(replace(step, position=number) for number, step in enumerate(steps, 1))


def steps_of(run_id: str, *names: str, kind: str = "backfill", **more: object) -> list[Entry]:
    return [Entry(run_id, 1, name, kind, TimeRange(0, DAY_MS), **more) for name in names]


@pytest.fixture
def lake(tmp_path):
    return a_lake_of(2, SPEC, tmp_path / "lake")


def note(lake, *steps: Entry) -> None:
    for step in steps:
        Ledger(lake.pipeline("meter")).append(step, datetime(2020, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("steps", "published"),
    [
        (("audited", "published"), True),
        (("erased",), True),
        (("maintained",), True),
        (("audited", "rejected"), False),
        (("audited", "prepared"), False),
        (("audited", "dropping", "dropped"), False),
        (("rejected", "publishing", "published"), True),
        (("audited", "failed"), None),
        (("publishing",), None),
    ],
)
def test_a_run_says_whether_the_tables_have_its_diff(steps, published):
    line = run_line(PipelineState(), steps_of("r", *steps, diff=DIFF))
    assert (line["diff"], line["diff_published"]) == (DIFF, published)


def test_a_run_without_a_diff_has_published_none():
    assert run_line(PipelineState(), steps_of("r", "published"))["diff_published"] is None


def test_an_interrupted_run_may_have_published_its_diff_in_part():
    (step,) = steps_of("r", "failed", diff=DIFF, message=INTERRUPTED)
    line = run_line(PipelineState(), [step])
    assert (line["status"], line["diff_published"]) == ("interrupted", None)


def test_the_report_has_the_documents_that_the_commands_print(lake):
    note(
        lake,
        *steps_of("r-2", "started", "rejected", audit=FAILED, diff=DIFF, reason="a bug"),
        *steps_of("r-3", "started", "published", accepted_loss="the sensor is new", closed=True),
    )
    lines, whole = runs_of(SPEC, lake), run_of(SPEC, lake, "r-2")
    found = runs_for_report(Ledger(lake.pipeline("meter")).state())
    assert [one["run_id"] for one in found] == ["r-3", "r-2", "r-1"]
    assert found == [run_of(SPEC, lake, one["run_id"]) for one in lines]
    assert [{name: one[name] for name in lines[0]} for one in found] == lines
    assert found[1] == whole
    assert {*whole} == {*a_run()}  # the made ones of other tests have the same keys
    assert (found[0]["accepted_loss"], found[0]["closed"]) == ("the sensor is new", True)
    assert status_of(SPEC, lake)["last_run"] == lines[0]


def test_a_run_that_was_reverted_says_so_until_the_revert_is(lake, capsys):
    note(lake, *steps_of("r-3", "published", kind="revert", reverts="r-1"))
    note(lake, *steps_of("r-2", "published"))
    by = {one["run_id"]: one["reverted_by"] for one in runs_of(SPEC, lake)}
    assert by == {"r-1": "r-3", "r-2": None, "r-3": None}
    assert run_of(SPEC, lake, "r-1")["reverted_by"] == "r-3"
    show.runs(runs_of(SPEC, lake))
    assert "published, reverted" in " ".join(capsys.readouterr().out.split())
    note(lake, *steps_of("r-4", "published", kind="revert", reverts="r-3"))
    assert run_of(SPEC, lake, "r-1")["reverted_by"] is None


def test_a_single_day_is_not_said_to_be_from_itself_to_itself():
    totals = {"slots": 2, "windows": 3, "quarantine": 0, "first_day": "2013-01-01"}
    said = [words.in_all(totals | {"last_day": last}) for last in ("2013-01-01", "2013-01-02")]
    assert said[0].endswith("in quarantine, of 2013-01-01")
    assert said[1].endswith("in quarantine, from 2013-01-01 to 2013-01-02")
    one = words.shown_days({"since": "2013-01-01", "until": "2013-01-01"})
    assert one.startswith("of 2013-01-01; ")
    assert words.shown_days({"since": None, "until": "2013-01-01"}).startswith("to 2013-01-01; ")
    assert words.shown_days({"since": "2013-01-01", "until": None}).startswith(
        "from 2013-01-01 to the "
    )


def test_a_run_of_several_attempts_is_one_line_and_upkeep_and_kinds_of_later_versions_none():
    twice = [replace(step, attempt=2) for step in steps_of("r-1", "started", "published")]
    kinds = (*UPKEEP, "annotate")
    others = [step for kind in kinds for step in steps_of(kind, "maintained", kind=kind)]
    found = runs_for_report(a_state(*steps_of("r-1", "started"), *twice, *others))
    assert [(one["run_id"], one["status"]) for one in found] == [("r-1", "published")]


def test_of_thousands_of_runs_only_the_audits_of_the_listed_ones_are_read():
    state = a_state(
        *steps_of("r-0", "published"),
        *(step for number in range(1, 500) for step in steps_of(f"r-{number}", "rejected")),
    )
    for step in state.steps:
        vars(step)["audit"] = json.dumps(FAILED)  # as it is read from the ledger
    found = runs_for_report(state)
    assert len(found) == 500
    with_details = [one["run_id"] for one in found if "audit" in one]
    assert with_details == [*(f"r-{499 - n}" for n in range(MOST_RUNS)), "r-0"]
    parsed = [one.run_id for one in state.steps if not isinstance(vars(one)["audit"], str)]
    assert {*parsed} == {*with_details}


def test_a_reason_is_the_last_that_was_given_and_a_drop_without_one_keeps_it():
    steps = [
        *steps_of("r", "started", reason="a trial", requested_by="ann"),
        *steps_of("r", "rejected", reason="a trial", requested_by="ann"),
    ]
    dropped = [*steps, *steps_of("r", "dropping", "dropped")]
    found = runs_for_report(a_state(*dropped))[0]
    assert (found["status"], found["reason"]) == ("dropped", "a trial")
    accepted = [*steps, *steps_of("r", "publishing", "published", reason="a holiday")]
    found = runs_for_report(a_state(*accepted))[0]
    assert (found["reason"], found["requested_by"]) == ("a holiday", "ann")


def test_the_report_is_processed_up_to_what_status_says_after_a_revert(lake, tmp_path):
    page = tmp_path / "lake" / "meter" / "_reports"

    def publish(run_id: str, days: int | None, kind: str = "advance", **more: object) -> str:
        """Publish up to a day; the day that the report says then."""
        until_ms = None if days is None else DAY_MS * days
        known = {"horizon_ms": DAY_MS * 15_000, "frontier_ms": until_ms, **more}
        note(lake, *steps_of(run_id, "published", kind=kind, **known))
        write_report(SPEC, lake, data_docs=False)
        said = json.loads((page / "report.json").read_text())["processed_up_to"]
        assert f"<dt>Processed up to</dt><dd>{said}</dd>" in (page / "report.html").read_text()
        stands = status_of(SPEC, lake)["processed_up_to"]
        assert said == (stands or "–").removesuffix("T00:00:00Z")
        return said

    assert publish("r-2", 14_999) == "2011-01-25"
    assert publish("r-3", 15_000) == "2011-01-26"
    assert publish("v-3", 14_999, "revert", reverts="r-3") == "2011-01-25"
    assert publish("v-2", None, "revert", reverts="r-2") == "–"


@pytest.fixture
def shown(lake, tmp_path, capsys):
    """The text of a command about the pipeline."""
    (tmp_path / "meter.yaml").write_text(FILE, encoding="utf-8")

    def call(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["--pipelines", str(tmp_path), "--lake", lake.root, *arguments])
        assert not ended.value.code
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize(
    "steps",
    [("rejected", "publishing", "published"), ("started", "dropping", "dropped"), ("published",)],
)
def test_runs_show_prints_the_reason_and_who_asked_whatever_the_run_was(lake, shown, steps):
    note(lake, *steps_of("r-9", *steps, reason="a [holiday]", requested_by="ann"))
    text = shown("runs", "show", "meter", "r-9")
    assert "because: a [holiday]\nasked for by: ann\n" in text
    assert "because" not in shown("runs", "show", "meter", "r-1")


def test_runs_show_prints_why_missing_rows_were_accepted(lake, shown):
    note(lake, *steps_of("r-9", "published", accepted_loss="the sensor is new"))
    assert "accepts missing rows: the sensor is new\n" in shown("runs", "show", "meter", "r-9")
    assert json.loads(shown("runs", "show", "meter", "r-9", "--json"))["accepted_loss"]


def test_an_acknowledgement_says_what_and_why(lake, shown):
    found = {"gaps": "2 gaps"}
    note(
        lake, *steps_of("a-1", "acknowledged", kind="acknowledge", reason="off", acknowledged=found)
    )
    assert "acknowledged gaps: 2 gaps\nbecause: off\n" in shown("runs", "show", "meter", "a-1")


def test_closed_up_to_is_the_last_slot_though_the_shown_days_have_none(lake, shown):
    def closed(*asked: str) -> str:
        lines = shown("status", "meter", *asked).splitlines()
        line = next(one for one in lines if one.startswith("closed up to"))
        return line.removeprefix("closed up to").strip()

    assert closed() == closed("--until", "2012-01-01") == "the last slot"


def test_closed_up_to_is_no_slot_where_nothing_is_published(tmp_path, shown, lake):
    empty = a_lake_of(1, SPEC, tmp_path / "other")
    for name in ("completeness", "windows"):
        DeltaTable(empty.pipeline("meter").uri(name)).delete()
    lines = shown("status", "meter", "--lake", empty.root).splitlines()
    (line,) = [one for one in lines if one.startswith("closed up to")]
    assert line.removeprefix("closed up to").strip() == "no slot yet"


def test_a_step_says_when_it_was_written_in_the_form_of_all_instants(lake):
    at = datetime(2020, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC)
    Ledger(lake.pipeline("meter")).append(Entry("r-2", 1, "published", "backfill"), at)
    newest = runs_of(SPEC, lake)[0]
    assert (newest["started"], newest["ended"]) == ("2020-01-02T03:04:05Z",) * 2
    (*_, change) = changes_of(SPEC, lake, 0)["runs"]
    assert change["at"] == "2020-01-02T03:04:05Z"
