"""Alerts: what is wrong reaches whom the pipeline's file names, once, and breaks no task."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from servers import mail_server, webhook_server

pytestmark = pytest.mark.airflow

DAY = datetime(2013, 1, 20, 6, tzinfo=UTC)
WARNING = {
    "name": "max_malformed_share",
    "severity": "warning",
    "sentence": "12 % <b>bad</b>",
}
SILENT = {"name": "silent_after", "severity": "warning", "sentence": "channel 2 is silent"}
EVERY_EVENT = "[failed, rejected, warning, stale, silent_channel]"


@pytest.fixture
def hook(monkeypatch):
    """A server of webhooks, as the connection `hook`; its token is a secret."""
    with webhook_server() as server:
        said = {
            "conn_type": "http",
            "host": "127.0.0.1",
            "port": server.server_address[1],
            "password": "t0ken",
            "extra": {"path": "alarms?of=strandline"},
        }
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(said))
        yield server


@pytest.fixture
def mail(monkeypatch):
    """A server of mail, as the connection `mail`."""
    with mail_server() as server:
        extra = {
            "from_email": "strandline@example.org",
            "to": "on-call@example.org",
            "disable_ssl": True,
            "disable_tls": True,
        }
        said = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": server.server_address[1],
            "extra": extra,
        }
        monkeypatch.setenv("AIRFLOW_CONN_MAIL", json.dumps(said))
        yield server


@pytest.fixture
def alerting(home, tmp_path, monkeypatch):
    """Gives the pipeline flights these alerts, for tasks that read its file by the environment."""

    def alerting(*alerts):
        from pathlib import Path

        from strandline_airflow import settings

        text = (settings.pipelines_folder() / "flights.yaml").read_text()
        folder = Path(tmp_path / "alerting")
        folder.mkdir(exist_ok=True)
        (folder / "flights.yaml").write_text(text + "\nalerts: [" + ", ".join(alerts) + "]\n")
        return folder

    return alerting


@pytest.fixture
def advance(home, monkeypatch):
    """Gives the end of a task `advance` of flights, by the pipeline file of a folder."""
    from airflow.sdk import Variable

    kept = {}
    monkeypatch.setattr(
        Variable, "get", lambda key, default=None, **_: json.loads(kept.get(key, "null")) or default
    )
    monkeypatch.setattr(
        Variable, "set", lambda key, value, **_: kept.__setitem__(key, json.dumps(value))
    )

    def advance(folder, answer=None, error=None, arguments=("--to=2013-01-20",), events=None):
        from types import SimpleNamespace

        from strandline_airflow.alerts import OF_A_RUN, alert_failure, alert_findings

        task = SimpleNamespace(
            pipeline="flights", pipelines=str(folder), application_args=arguments
        )
        ti = SimpleNamespace(log_url="http://127.0.0.1:8080/dags/x?a=1&b=2")
        context = {"task": task, "ti": ti, "exception": error}
        if error is not None:
            alert_failure(context)
        else:
            alert_findings(context, "flights", task, answer, events=events or OF_A_RUN)

    return advance


def answer(*findings, kind="advance"):
    within = {"start": "2013-01-01T00:00:00Z", "end": "2013-01-03T00:00:00Z"}
    return {"status": "published", "kind": kind, "range": within, "findings": list(findings)}


def test_a_warning_is_posted_with_pipeline_range_finding_and_link(advance, alerting, hook):
    advance(alerting(f"{{on: {EVERY_EVENT}, to: hook}}"), answer(WARNING))
    ((path, headers, said),) = hook.got
    assert path == "/alarms?of=strandline"
    assert headers["Authorization"] == "Bearer t0ken"
    assert said["pipeline"] == "flights"
    assert said["event"] == "warning"
    assert said["finding"] == "12 % <b>bad</b>"
    assert said["range"] == "2013-01-01T00:00:00Z to 2013-01-03T00:00:00Z"
    assert said["link"].startswith("http://127.0.0.1:8080/dags/")
    assert "t0ken" not in json.dumps(said)


def test_nobody_is_told_of_a_finding_twice_until_it_is_gone(advance, alerting, hook):
    folder = alerting(f"{{on: {EVERY_EVENT}, to: hook}}")
    for findings in ([WARNING], [WARNING], [WARNING, SILENT], [SILENT], [WARNING, SILENT]):
        advance(folder, answer(*findings))
    assert [said["name"] for *_, said in hook.got] == [
        "max_malformed_share",
        "silent_after",
        "max_malformed_share",
    ]


def test_a_run_does_not_end_the_findings_that_it_has_not_checked(advance, alerting, hook):
    folder = alerting(f"{{on: {EVERY_EVENT}, to: hook}}")
    late = {"name": "schedule", "severity": "warning", "sentence": "nothing is processed"}
    for found in (
        {"findings": [late]},  # of the watch
        answer(WARNING),
        answer(kind="backfill"),
        answer(WARNING),
        {"findings": [late]},
    ):
        advance(folder, found, events=("stale",) if "kind" not in found else None)
    assert [said["name"] for *_, said in hook.got] == ["schedule", "max_malformed_share"]


def test_the_watch_says_until_a_run_has_rebuilt_them_that_results_in_use_have_changed(
    advance, alerting, hook
):
    """Only `status` finds it, and nobody was told: it was a `warning`, which the watch left out."""
    folder = alerting(f"{{on: {EVERY_EVENT}, to: hook}}")
    said = "results of meter of 2024-03-01 have changed since they were used"
    changed = {"name": "results_changed", "severity": "warning", "sentence": said}
    of_watch = [{"findings": found} for found in ([changed], [changed], [], [changed])]
    for found in (of_watch[0], answer(), *of_watch[1:]):
        advance(folder, found, events=("stale",) if "kind" not in found else None)
    told = [(said["event"], said["name"], said["finding"]) for *_, said in hook.got]
    assert told == [("stale", "results_changed", said)] * 2


def test_only_the_events_that_an_alert_names_are_sent_to_it(advance, alerting, hook, mail):
    folder = alerting("{on: silent_channel, to: hook}", "{on: warning, to: mail}")
    advance(folder, answer(WARNING, SILENT))
    assert [said["event"] for *_, said in hook.got] == ["silent_channel"]
    assert [one["Subject"] for one in mail.got] == ["strandline flights: warning"]


def test_a_receiver_that_two_alerts_name_gets_each_finding_once(advance, alerting, hook):
    folder = alerting("{on: silent_channel, to: hook}", "{on: warning, to: hook}")
    for _ in range(3):
        advance(folder, answer(WARNING, SILENT))
    assert [said["event"] for *_, said in hook.got] == ["silent_channel", "warning"]


def test_a_mail_shows_text_of_others_as_text(advance, alerting, mail):
    advance(alerting("{on: warning, to: mail}"), answer(WARNING | {"sentence": "{{ 1 }} <script>"}))
    (one,) = mail.got
    body = one.get_body(("html",)).get_content()
    assert "{{ 1 }} &lt;script&gt;" in body
    assert "a=1&amp;b=2" in body
    assert one["To"] == "on-call@example.org"


def test_a_failed_audit_is_rejected_and_whatever_else_fails_for_good_failed(
    advance, alerting, hook
):
    from strandline_airflow.outcomes import failure_of

    folder = alerting(f"{{on: {EVERY_EVENT}, to: hook}}")
    said = {"error": {"place": "flights", "problem": "52 % malformed", "way_out": ""}}
    for code in (3, 2, 1):
        advance(folder, error=failure_of("strandline advance", code, [], said))
    assert [(one["event"], one["range"]) for *_, one in hook.got] == [
        ("rejected", "up to 2013-01-20"),
        ("failed", "up to 2013-01-20"),
        ("failed", "up to 2013-01-20"),
    ]
    assert "52 % malformed" in hook.got[0][2]["finding"]


def test_a_task_whose_arguments_could_not_be_rendered_is_an_alert_too(advance, alerting, hook):
    advance(alerting(f"{{on: {EVERY_EVENT}, to: hook}}"), error=OSError("x"), arguments=print)
    assert [(one["event"], one["range"]) for *_, one in hook.got] == [("failed", "")]


@pytest.mark.parametrize("breaks", ["refuses", "is no connection", "is of another type"])
def test_who_cannot_be_reached_is_in_the_log_and_is_told_the_next_time(
    advance, alerting, hook, monkeypatch, caplog, breaks
):
    folder = alerting("{on: warning, to: hook}")
    there = {"refuses": None, "is no connection": "", "is of another type": '{"conn_type": "ftp"}'}
    with monkeypatch.context() as broken:
        if breaks == "refuses":
            hook.status = 500
        elif there[breaks]:
            broken.setenv("AIRFLOW_CONN_HOOK", there[breaks])
        else:
            broken.delenv("AIRFLOW_CONN_HOOK")
        advance(folder, answer(WARNING))
        assert "alert to hook not sent" in caplog.text
    hook.status = 200
    hook.got.clear()
    advance(folder, answer(WARNING))
    assert [said["event"] for *_, said in hook.got] == ["warning"]


def test_a_task_that_has_failed_for_good_sends_its_alert_in_airflow_itself(
    run, submit, alerting, hook, monkeypatch
):
    folder = alerting("{on: [rejected, warning], to: hook}")
    import strandline_airflow.alerts as alerts

    known = alerts.find_spec
    monkeypatch.setattr(alerts, "find_spec", lambda _, name: known(folder, name))
    error = {"error": {"place": "flights", "problem": "52 % malformed", "way_out": "mend it"}}
    submit.will_answer(error)
    submit.will_exit_with(3)
    done = run("strandline_daily_flights", logical_date=DAY)
    assert done.tasks["advance"] == "failed"
    ((_, _, said),) = hook.got
    assert said["event"] == "rejected"
    assert "mend it" in said["finding"]
    assert "/dags/strandline_daily_flights/runs/" in said["link"]


def test_an_approval_that_nobody_gives_is_an_alert_as_every_task_that_fails(alerting, hook):
    from types import SimpleNamespace

    from airflow.sdk.exceptions import AirflowFailException

    from strandline_airflow import PreviewApprovalOperator

    prepared = {"pipeline": "flights", "status": "prepared", "run_id": "r-1"}
    context = {"ti": SimpleNamespace(xcom_pull=lambda task_ids: prepared, log_url="")}
    task = PreviewApprovalOperator(
        task_id="approval", pipelines=alerting("{on: failed, to: hook}"), on_failure_callback=print
    )
    task.render_template_fields(context)
    error = AirflowFailException("nobody has answered in time; nothing is published")
    for callback in task.on_failure_callback:
        callback({**context, "task": task, "exception": error})
    ((_, _, said),) = hook.got
    assert (said["event"], said["pipeline"]) == ("failed", "flights")
    assert "nobody has answered" in said["finding"]


def test_a_day_that_is_not_processed_in_time_is_stale():
    from strandline_airflow.commands import with_unprocessed

    now = datetime(2013, 1, 20, 9, tzinfo=UTC)
    on_time = {"processed_up_to": "2013-01-20T00:00:00Z", "findings": []}
    assert with_unprocessed(on_time, now)["findings"] == []
    for until in ("2013-01-19T00:00:00Z", None):
        (found,) = with_unprocessed(on_time | {"processed_up_to": until}, now)["findings"]
        assert found["name"] == "schedule"
        assert "2013-01-20T09:00" in found["sentence"]


class _OnThe21st(datetime):
    """The clock of the watch, at nine."""

    @classmethod
    def now(cls, tz=None):
        return cls(2013, 1, 21, 9, tzinfo=tz)


def test_the_watch_says_what_is_not_processed_also_of_what_has_never_run(
    advance, alerting, hook, command, monkeypatch
):
    """`advance` gives the variable of what was sent."""
    from types import SimpleNamespace

    from strandline.errors import NoRunsError
    from strandline_airflow import commands
    from strandline_airflow.commands import StrandlineWatchOperator

    monkeypatch.setattr(commands, "datetime", _OnThe21st)
    folder = alerting("{on: stale, to: hook}")
    watch = StrandlineWatchOperator(task_id="flights", pipeline="flights", pipelines=folder)
    context = {"task": watch, "ti": SimpleNamespace(log_url="http://127.0.0.1:8080/dags/x")}
    error = NoRunsError("flights", "lake")
    said = {"place": error.place, "problem": error.problem, "way_out": error.way_out}
    command.will_answer({"error": {"kind": "NoRunsError", **said}, "exit_code": 2})
    command.will_exit_with(2, 0, 0, 0)
    watch.execute(context)
    midnight = "2013-01-21T00:00:00Z"
    for until in (midnight, "2013-01-20T00:00:00Z", "2013-01-20T00:00:00Z"):
        command.will_answer({"processed_up_to": until, "findings": []})
        watch.execute(context)
    found = [(said["event"], said["range"], said["finding"].split(",")[0]) for *_, said in hook.got]
    assert found == [
        ("stale", "", "nothing is processed"),
        ("stale", f"2013-01-20T00:00:00Z to {midnight}", "processed up to 2013-01-20T00:00:00Z"),
    ]


def test_the_watch_is_due_at_the_times_that_alerts_name_and_is_not_there_without_any(
    alerting, home
):
    from strandline_airflow import strandline_dags

    stale = "{on: stale, to: hook, by: '07:30'}", "{on: [failed, stale], to: mail}"
    module = {"__file__": __file__}
    strandline_dags(alerting(*stale), module)
    watch = module["strandline_watch"]
    assert [one.expression for one in watch.timetable.timetables] == ["30 7 * * *", "0 9 * * *"]
    assert watch.task_ids == ["flights"]
    without = {"__file__": __file__}
    strandline_dags(alerting("{on: failed, to: hook}"), without)
    assert "strandline_watch" not in without
