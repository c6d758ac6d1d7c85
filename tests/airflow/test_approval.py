"""What is published is what a person has seen: asked, answered over Airflow's own API."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from job_calls import FORM, arguments

from strandline.visible import visible

pytestmark = pytest.mark.airflow
STALE = {
    "kind": "StaleStagingError",
    "place": "flights run r1-1",
    "problem": "is out of date: run r2-1 has published",
    "way_out": "",
}

APPROVED = {"responded_by_user": {"name": "ann"}}


@pytest.fixture(autouse=True)
def no_report(bag, monkeypatch):
    from strandline_airflow.commands import StrandlineReportOperator

    monkeypatch.setattr(StrandlineReportOperator, "execute", lambda self, context: "no report")


def prepared(key="EWR", **more):
    """What a job says that has prepared a window of a key."""
    nothing = {
        "windows": {"added": 0, "changed": 0, "removed": 0},
        "quarantine": {"gained": 0, "changed": 0, "lost": 0},
    }
    one = nothing | {"windows": {"added": 0, "changed": 1, "removed": 0}}
    change = {"start": "2013-02-10T00:00:00Z", "end": "2013-02-10T01:00:00Z", "key": {"o": key}}
    preview = {
        "windows": one["windows"],
        "changed_in_values": 1,
        "shown": [{"how": "changed", **change, "before": {"n": 3}, "after": {"n": 1234}}],
        "quarantine": {"gained": {"late": 2}, "changed": {}, "lost": {}},
        "days": [{"day": "2013-02-10", **one}],
        "other_days": {"days": 0, **nothing},
        "days_cut": False,
    }
    answer = {"status": "prepared", "pipeline": "flights", "run_id": "r1-1", "preview": preview}
    return answer | more


def test_what_is_approved_over_the_api_is_published_and_by_whom_is_said(answered, submit):
    hostile = "``` <b>x</b> [x](y) [red]| {{ 7 * 7 }}\x1b\u202e"
    submit.will_answer(prepared(hostile))
    done, seen = answered(FORM, "Approve")
    assert (done.state, done.tasks["approval"], done.tasks["publish"]) == ("success",) * 3
    _, publish = (arguments(call) for call in submit.calls)
    who = "--requested-by=airflow: dag_test, approved by ann"
    assert publish == ["flights", "r1-1", who, "--json"]
    fence, *lines, end = seen["body"].splitlines()
    assert (fence, end) == ("````text", "````")
    (line,) = (line for line in lines if "n 3 → 1,234" in line)
    at = lines.index(line)
    shown = " ".join(
        "".join(f"{one[46:].split('  ')[0].strip()} " for one in lines[at : at + 2]).split()
    )
    assert shown == visible(hostile)  # wrapped in its column
    assert not {"\x1b", "\u202e"} & {*seen["body"]}
    assert not any(line.startswith("````") for line in lines)


def test_what_is_rejected_is_not_published(answered, submit):
    submit.will_answer(prepared())
    done, _ = answered(FORM, "Reject")
    assert (done.tasks["approval"], done.tasks["publish"]) == ("success", "skipped")
    assert len(submit.calls) == 1
    assert done.tasks["report"] == "success"


def test_what_nobody_was_to_approve_is_rebuilt_once_it_is_stale(run, submit):
    submit.will_answer(prepared(error=STALE))
    submit.will_exit_with(0, 2, 0)
    done = run("strandline_reprocess", FORM)
    assert done.state == "success"
    prepare, _, again = (arguments(call) for call in submit.calls)
    assert again == [one for one in prepare if not one.startswith(("--prepare", "--preview"))]


def a_context(answer):
    return {"ti": SimpleNamespace(xcom_pull=lambda *, task_ids: answer.get(task_ids))}


def test_in_a_dag_of_ones_own_the_tasks_have_any_ids_and_no_param_says_who_approves(bag, submit):
    from airflow.sdk import DAG, TaskGroup
    from airflow.sdk.exceptions import AirflowFailException

    from strandline_airflow import PreviewApprovalOperator, StrandlinePublishOperator

    with DAG("own"), TaskGroup("fix"):
        ids = {"prepare": "fix.stage"}
        asks = PreviewApprovalOperator(task_id="ask", **ids)
        publishes = StrandlinePublishOperator(
            task_id="publish", pipeline="flights", approval="fix.ask", again=[], **ids
        )
    answers = {"fix.stage": prepared(), "fix.ask": APPROVED}
    said = SimpleNamespace(triggering_user_name="ann", run_type=None)
    context = {**a_context(answers), "params": {}, "dag_run": said}
    for task in (asks, publishes):
        task.render_template_fields(context)
    assert asks.subject == "Publish flights: nothing changes?"
    assert publishes.application_args[:2] == ["flights", "r1-1"]
    assert "approved by ann" in publishes.application_args[2]
    submit.will_answer({"error": STALE})
    submit.will_exit_with(2)
    with pytest.raises(AirflowFailException, match=r"Clear the task fix\.stage with all after it"):
        publishes.execute(context)


def test_what_was_approved_and_is_stale_is_not_published_and_it_is_said_what_to_clear(
    execute, submit
):
    from airflow.sdk.exceptions import AirflowFailException

    submit.will_answer({"error": STALE})
    submit.will_exit_with(2)
    said = {"prepare": prepared(), "approval": APPROVED}
    with pytest.raises(
        AirflowFailException, match=r"is out of date(?s:.*)Clear the task prepare with"
    ):
        execute("strandline_reprocess", "publish", FORM | {"approval": True}, **a_context(said))
    assert len(submit.calls) == 1


def test_another_refusal_is_final_whether_approved_or_not(execute, submit):
    from airflow.sdk.exceptions import AirflowFailException

    submit.will_answer(
        {"error": STALE | {"kind": "InputError", "problem": "its staging is missing"}}
    )
    submit.will_exit_with(2)
    said = {"prepare": prepared()}
    with pytest.raises(AirflowFailException, match="its staging is missing"):
        execute("strandline_reprocess", "publish", FORM, **a_context(said))
    assert len(submit.calls) == 1


def test_where_nothing_can_change_nobody_is_asked_and_nothing_is_published(execute, submit):
    from airflow.sdk.exceptions import AirflowSkipException

    said = {"prepare": prepared(status="repeated")}
    for task in ("approval", "publish"):
        with pytest.raises(AirflowSkipException):
            execute("strandline_reprocess", task, FORM | {"approval": True}, **a_context(said))
    assert submit.calls == []


def test_a_prepare_that_has_said_nothing_is_not_published(execute, submit):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="has left no result"):
        execute("strandline_reprocess", "publish", FORM, **a_context({}))
    assert submit.calls == []


def test_an_approval_without_an_answer_fails_for_good(bag):
    from airflow.sdk.exceptions import AirflowFailException

    approval = bag.dags["strandline_reprocess"].get_task("approval")
    assert approval.response_timeout.days == 1
    with pytest.raises(AirflowFailException, match="nobody has answered in time"):
        approval.process_trigger_event_error({"error": "late", "error_type": "timeout"})


def test_the_subject_names_pipeline_range_and_size():
    from types import SimpleNamespace

    from strandline_airflow.approvals import subject_to_approve

    prepared = {
        "status": "prepared",
        "pipeline": "flights",
        "run_id": "r-1",
        "range": {"start": "2013-02-01T00:00:00Z", "end": "2013-02-03T00:00:00Z"},
        "diff": {
            "quarantine": {"insert": 1, "update": 0, "delete": 0},
            "completeness": {"insert": 0, "update": 0, "delete": 0},
            "windows": {"insert": 2, "update": 1_200, "delete": 0},
        },
    }
    asked = {"ti": SimpleNamespace(xcom_pull=lambda task_ids: prepared)}
    assert subject_to_approve("prepare")(asked) == (
        "Publish flights, 2013-02-01T00:00:00Z to 2013-02-03T00:00:00Z: "
        "1,202 rows of windows, 1 row of quarantine?"
    )


def test_a_preview_leads_with_windows_whose_values_change_and_fits_the_page():
    from strandline_airflow.approvals import preview_text

    day = {
        "day": "2013-02-01",
        "windows": {"added": 0, "changed": 1, "removed": 0},
        "quarantine": {"gained": 0, "changed": 0, "lost": 0},
    }
    change = {
        "how": "changed",
        "start": "2013-02-01T10:00:00Z",
        "end": "2013-02-01T11:00:00Z",
        "key": {"origin": "EWR", "flight": "3f2b6c1e-8d5a-4a44-9d0b-6f1c2ad9b7e1"},
        "before": {"records": 3, "longest_air_time_min": 150, "closed_at": "2013-02-01T15:07Z"},
        "after": {"records": 4, "longest_air_time_min": 598, "closed_at": "2013-02-02T01:47Z"},
    }
    preview = {
        "days": [day],
        "other_days": day | {"days": 0},
        "days_cut": False,
        "quarantine": {"lost": {f"a rather long reason {n}": 12_345 for n in range(9)}},
        "windows": {"added": 0, "changed": 12_345, "removed": 0},
        "changed_in_values": 1,
        "shown": [change],
    }
    lines = preview_text({"preview": preview}).splitlines()
    assert lines[0].startswith("windows that change: 12,345")
    (row,) = (line for line in lines[:5] if "3 → 4" in line)
    assert "2013-02-01T10:00:00Z" in row
    assert "2013-02-01T11:00:00Z" in row
    assert not any("…" in line for line in lines)
    header = lines.index(next(line for line in lines if "key" in line))
    first, end = (lines[header].index(name) for name in ("key", "what"))
    in_the_column = "".join(line[first:end].strip() for line in lines[header + 1 :])
    assert "3f2b6c1e-8d5a-4a44-9d0b-6f1c2ad9b7e1" in in_the_column
    widths = [*map(len, lines)]
    assert max(widths) <= 86, "Airflow's page shows as many on a screen of 1,280 pixels"


def test_a_preview_alone_prepares_nothing(execute, submit):
    form = {
        "pipeline": "flights",
        "start": "2013-02-01",
        "end": "2013-02-02",
        "reason": "look first",
        "preview": True,
    }
    execute("strandline_reprocess", "prepare", form)
    (call,) = submit.calls
    assert "--dry-run" in call
    assert "--prepare" not in call
