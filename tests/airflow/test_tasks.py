"""What the tasks call, and what they make of its end; `spark-submit` is a stand-in."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import psutil
import pyarrow as pa
import pytest
from job_calls import FORM, arguments, job, kill_once

pytestmark = pytest.mark.airflow
END = datetime(2013, 1, 15, 6, tzinfo=UTC)
PYTHON = str(Path(sys.executable).with_name("python"))
"""The driver's: of the environment that has the command."""


@pytest.fixture(autouse=True)
def no_report(bag, monkeypatch):
    from strandline_airflow.commands import StrandlineReportOperator

    monkeypatch.setattr(StrandlineReportOperator, "execute", lambda self, context: "no report")


def test_a_daily_run_advances_to_the_end_of_its_data_interval(run, submit):
    submit.will_answer({"run_id": "r1"})
    done = run("strandline_daily_flights", logical_date=END)
    assert done.state == "success"
    (call,) = submit.calls
    assert call[:2] == ["--master", "local[2]"]
    pipeline, to, as_json, run_key, who = arguments(call)
    assert (pipeline, to, as_json) == ("flights", "--to=2013-01-15T06:00:00Z", "--json")
    assert run_key.startswith("--run-key=strandline_daily_flights/manual__")
    assert who == "--requested-by=airflow: dag_test"
    assert done.values["advance"] == {"run_id": "r1"}


def test_a_day_that_was_processed_before_skips_the_task_and_starts_nobody(run, submit):
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import func, select

    def events() -> int:
        with create_session() as session:
            return session.scalar(select(func.count()).select_from(AssetEvent))

    before = events()
    answer = {"status": "already_processed", "notes": ["already processed up to the 20th"]}
    submit.will_answer(answer)
    done = run("strandline_daily_flights", logical_date=END)
    assert (done.state, done.tasks["advance"]) == ("success", "skipped")
    assert done.values["advance"] == answer
    assert events() == before
    submit.will_answer({"status": "published"})
    run("strandline_daily_flights", logical_date=END.replace(day=16))
    assert events() == before + 1


def test_a_skipped_task_names_the_way_of_airflow_to_compute_what_was_processed(execute, submit):
    from airflow.sdk.exceptions import AirflowSkipException

    submit.will_answer({"status": "already_processed", "notes": ["already processed"]})
    ti = SimpleNamespace(xcom_push=lambda key, value: None)
    with pytest.raises(AirflowSkipException) as skipped:
        execute("strandline_daily_flights", "advance", data_interval_end=END, ti=ti)
    assert str(skipped.value) == (
        "already processed\nin Airflow: trigger strandline_reprocess with start and end of the "
        "range; or this DAG with the params to and force, which computes up to that midnight again"
    )


@pytest.mark.parametrize(
    ("conf", "asked_for"),
    [
        ({}, ["--all"]),
        ({"pipeline": "flights"}, ["flights"]),
        ({"dry_run": True}, ["--all", "--dry-run"]),
    ],
)
def test_upkeep_is_of_all_pipelines_or_one_and_may_only_show(execute, command, conf, asked_for):
    execute("strandline_maintain", "maintain", conf)
    assert command.calls == [["maintain", *asked_for]]


def test_a_daily_run_takes_its_param_before_the_interval(execute, submit):
    execute("strandline_daily_flights", "advance", {"to": "2013-03-01"}, data_interval_end=END)
    execute("strandline_daily_flights", "advance", data_interval_end=END)
    assert [arguments(call)[1] for call in submit.calls] == [
        "--to=2013-03-01T00:00:00Z",
        "--to=2013-01-15T06:00:00Z",
    ]


def test_a_range_may_shrink_only_where_that_is_said(execute, submit):
    may = {"allow_removals": True}
    execute("strandline_daily_flights", "advance", may, data_interval_end=END)
    execute("strandline_reprocess", "prepare", FORM | may)
    assert all("--allow-removals" in arguments(call) for call in submit.calls)
    execute("strandline_reprocess", "prepare", FORM)
    assert "--allow-removals" not in arguments(submit.calls[-1])


def test_rules_of_one_run_and_a_table_anew_are_asked_for_in_the_form(execute, submit):
    execute("strandline_reprocess", "prepare", FORM | {"bound": "4h", "allowed_lateness": "90m"})
    assert {"--bound=4h", "--allowed-lateness=90m"} < set(arguments(submit.calls[-1]))
    execute("strandline_reprocess", "prepare", FORM | {"recreate": True})
    assert "--recreate" in arguments(submit.calls[-1])
    execute("strandline_reprocess", "prepare", FORM)
    asked = " ".join(arguments(submit.calls[-1]))
    assert not any(one in asked for one in ("--bound", "--allowed-lateness", "--recreate"))


def test_a_run_without_any_date_fails_at_once_and_still_makes_the_report(run, submit):
    done = run("strandline_daily_flights")
    assert (done.state, done.tries["advance"], submit.calls) == ("failed", 1, [])
    assert done.tasks["report"] == "success"


def test_reprocessing_prepares_a_range_and_then_publishes_just_that(run, submit):
    submit.will_answer({"status": "prepared", "pipeline": "flights", "run_id": "r1-1"})
    done = run("strandline_reprocess", FORM | {"as_of": "2013-03-01T12:00:00+02:00"})
    assert done.state == "success"
    assert done.tasks["approval"] == "skipped"
    prepare, publish = (arguments(call) for call in submit.calls)
    assert prepare[:4] == [
        "flights",
        "--start=2013-02-10T00:00:00Z",
        "--end=2013-02-13T00:00:00Z",
        "--as-of=2013-03-01T10:00:00Z",
    ]
    assert "--reason=the delays were wrong" in prepare
    assert {"--prepare", "--preview-rows=100"} < set(prepare)
    assert publish == ["flights", "r1-1", "--requested-by=airflow: dag_test", "--json"]
    assert [job(call)[:2] for call in submit.calls] == [
        ["backfill", "flights"],
        ["runs", "publish"],
    ]


def test_a_reason_is_handed_on_as_it_is_and_as_nothing_else(execute, submit):
    reason = (
        "--close --reopen {{ 7 * 7 }} {% raw %} {{ conn.spark_default }} $(touch pwned); "
        "`touch pwned` && \"touch\" 'pwned' | tee * späte Flüge ✈ \\n %s %(x)s"
    )
    execute("strandline_reprocess", "prepare", FORM | {"reason": reason})
    (call,) = submit.calls
    assert f"--reason={reason}" in call
    assert not {"--close", "--reopen"} & set(call)


def test_hostile_params_are_refused_before_anything_is_called(run, submit):
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError, match="reason"):
        run("strandline_reprocess", FORM | {"reason": "two\nlines"})
    assert submit.calls == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"pipeline": "nope"},
        {"pipeline": "../../lake"},
        {"pipeline": ["flights"]},
        {"pipeline": "flights; touch pwned"},
        {"start": "yesterday"},
        {"start": "2013-02-10 --close"},
        {"start": "{{ ds }}"},
        {"end": None},
        {"end": "2013-02-13\n"},
        {"as_of": 7},
        {"bound": "4"},
        {"bound": "4h --recreate"},
        {"allowed_lateness": "-1h"},
        {"allowed_lateness": "2h\n"},
        {"recreate": "yes"},
        {"reason": ""},
        {"reason": "   \t "},
        {"reason": "two\nlines"},
        {"reason": "a last line\n"},
        {"reason": "a\x1b[2Jb cd"},
        {"reason": "x" * 501},
    ],
    ids=str,
)
def test_no_run_is_created_from_a_hostile_param(asked, wrong):
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError, match=next(iter(wrong))):
        asked("strandline_reprocess", FORM | wrong)


@pytest.mark.parametrize("missing", ["pipeline", "start", "end", "reason"])
def test_the_form_has_to_be_filled_in(asked, missing):
    from airflow.sdk.exceptions import ParamValidationError

    empty = dict.fromkeys(("as_of", "allowed_lateness", "bound", "engine"))
    off = dict.fromkeys(("recreate", "allow_removals", "approval", "force", "preview"), False)
    assert asked("strandline_reprocess", FORM) == FORM | empty | off
    with pytest.raises(ParamValidationError):
        asked("strandline_reprocess", {name: FORM[name] for name in FORM if name != missing})


def test_what_only_a_look_at_all_of_it_shows_fails_at_once(execute, submit):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="2013-02-31"):
        execute("strandline_reprocess", "prepare", FORM | {"start": "2013-02-31"})
    assert submit.calls == []


def test_a_failed_audit_ends_a_run_at_once_and_still_makes_the_report(run, submit):
    submit.will_exit_with(3)
    done = run("strandline_reprocess", FORM)
    assert (done.state, done.tasks["prepare"], done.tries["prepare"]) == ("failed", "failed", 1)
    assert (done.tasks["publish"], done.tasks["report"]) == ("upstream_failed", "success")
    assert len(submit.calls) == 1


@pytest.mark.parametrize(
    ("code", "for_good"), [(1, False), (2, True), (3, True), (4, False), (137, False)]
)
def test_wrong_input_and_failed_audits_alone_are_never_tried_again(execute, submit, code, for_good):
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    submit.will_exit_with(code)
    with pytest.raises(AirflowException, match=f"exit code {code}") as caught:
        execute("strandline_reprocess", "prepare", FORM)
    assert isinstance(caught.value, AirflowFailException) == for_good


def test_other_failures_are_tried_again(run, submit):
    submit.will_exit_with(4, 1, 0)
    done = run("strandline_daily_flights", {"to": "2013-03-01"})
    assert (done.state, done.tries["advance"], len(submit.calls)) == ("success", 3, 3)
    assert len({tuple(call) for call in submit.calls}) == 1  # one run key, so one run of Strandline


def test_a_failure_says_what_the_job_said():
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    from strandline_airflow.outcomes import failure_of

    output = ["26/11/21 09:54:28 WARN Utils: noise", "", "flights: late share 0.4 > 0.02"]
    rejected = failure_of("advance.py", 3, output)
    assert isinstance(rejected, AirflowFailException)
    assert str(rejected) == (
        "advance.py ended with exit code 3: the audit failed, so nothing was published. It said:\n"
        "flights: late share 0.4 > 0.02"
    )
    assert type(failure_of("advance.py", 4, output)) is AirflowException


@pytest.mark.parametrize(
    ("written", "expected"),
    [('{"a": {"b": 2}}', {"a": {"b": 2}}), ('{"a": {"b"', None), ("", None), (None, None)],
)
def test_an_answer_is_the_document_that_was_written_whole(written, expected):
    from strandline_airflow.outcomes import answer_file

    with answer_file() as file:
        if written is not None:
            file.path.write_text(written)
        assert file.read() == expected
    assert not file.path.parent.exists()


@pytest.mark.parametrize("by", ["asset_triggered", "asset_materialization"])
def test_a_run_that_an_asset_triggers_goes_as_far_as_its_own_time(by):
    from airflow.utils.types import DagRunType

    from strandline_airflow.requests import advance_request

    due = datetime(2013, 1, 20, 6, tzinfo=UTC)
    dag_run = SimpleNamespace(
        dag_id="d", run_id="r", run_type=DagRunType(by), run_after=due, triggering_user_name=None
    )
    argv = advance_request("flights")({"params": {}, "dag_run": dag_run})
    assert "--to=2013-01-20T06:00:00Z" in argv


def test_a_missing_connection_is_an_error_and_not_the_master_yarn(execute, submit, monkeypatch):
    from airflow.sdk.exceptions import AirflowFailException

    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    with pytest.raises(AirflowFailException, match="there is no connection 'spark_default'"):
        execute("strandline_daily_flights", "advance", {"to": "2013-03-01"})
    assert submit.calls == []


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_a_command_that_is_not_there_fails_its_task_for_good_and_says_who_names_it(
    execute, monkeypatch, engine
):
    from airflow.sdk.exceptions import AirflowFailException

    said = '{"conn_type": "strandline", "extra": {"executable": "/opt/nowhere/strandline"}}'
    monkeypatch.setenv("AIRFLOW_CONN_STRANDLINE_ENGINE", said)
    problem = "/opt/nowhere/strandline cannot be started .*'strandline_engine'"
    with pytest.raises(AirflowFailException, match=problem):
        execute("strandline_daily_flights", "advance", {"to": "2013-03-01", "engine": engine})


@pytest.mark.parametrize("landed", [True, False], ids=["few rows", "nothing"])
def test_a_local_spark_gets_the_settings_of_the_command_and_those_of_the_pipeline_win(
    execute, submit, tmp_path, monkeypatch, landed
):
    from deltalake import write_deltalake

    from strandline.lake.local import local_settings

    monkeypatch.setenv("STRANDLINE_LAKE", str(tmp_path / "lake"))
    if landed:  # a JVM that compiles quickly is enough for these
        write_deltalake(str(tmp_path / "lake/landing/flights"), pa.table({"flight": [1]}))
    assert (local_settings(short=True) == local_settings()) is False
    execute("strandline_daily_strict", "advance", {"to": "2013-03-01"})
    given = [one for one in submit.calls[0] if one.startswith("spark.")]
    own = {"spark.driver.memory": "3g", "spark.pyspark.driver.python": PYTHON}
    expected = local_settings(short=landed) | own
    assert sorted(given) == sorted(f"{key}={value}" for key, value in expected.items())


def test_a_cluster_is_asked_with_the_settings_of_the_command_and_those_of_the_pipeline_win(
    execute, submit, monkeypatch
):
    from strandline.lake.local import cluster_settings

    monkeypatch.setenv(
        "AIRFLOW_CONN_SPARK_DEFAULT",
        '{"conn_type": "spark", "host": "spark://127.0.0.1", "port": 7077}',
    )
    execute("strandline_daily_strict", "advance", {"to": "2013-03-01"})
    (call,) = submit.calls
    assert call[:2] == ["--master", "spark://127.0.0.1:7077"]
    given = [one for one in call if one.startswith("spark.")]
    own = {"spark.driver.memory": "3g", "spark.pyspark.driver.python": PYTHON}
    expected = cluster_settings() | own
    assert sorted(given) == sorted(f"{key}={value}" for key, value in expected.items())


def test_a_report_goes_to_the_pipelines_that_published_or_that_the_param_names(bag):
    from airflow.sdk import Asset

    from strandline_airflow.requests import Requests

    class Event:
        asset = Asset(name="strandline_strict", uri="strandline://strict/windows")

    everything = {"params": {"pipeline": "(all)"}}
    assert Requests().pipelines_to_report(everything) == [
        "flights",
        "flights_daily",
        "flights_early",
        "flights_hourly",
        "strict",
    ]
    assert Requests().pipelines_to_report(
        everything | {"triggering_asset_events": {1: [Event]}}
    ) == ["strict"]
    assert Requests().pipelines_to_report({"params": {"pipeline": "flights"}}) == ["flights"]


def test_the_link_leads_to_the_served_report(bag, monkeypatch):
    from strandline_airflow.links import ReportLink

    advance = bag.dags["strandline_daily_flights"].get_task("advance")
    assert [type(link) for link in advance.operator_extra_links] == [ReportLink]
    assert ReportLink().get_link(advance, ti_key=None) == "/strandline/reports/flights"
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://example.org/airflow/")
    assert ReportLink().get_link(advance, ti_key=None) == "/airflow/strandline/reports/flights"
    landing = bag.dags["land_flights"].get_task("land")
    assert ReportLink().get_link(landing, ti_key=None) == ""


def test_killing_the_task_ends_the_jvm_and_the_drivers_python(bag, tmp_path):
    """With the real spark-submit: the driver's Python would outlive the JVM by itself."""
    from strandline_airflow.operators import StrandlineJobOperator

    started = tmp_path / "started"
    script = tmp_path / "job.py"
    script.write_text(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(started)!r}).write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    task = StrandlineJobOperator(
        task_id="sleep",
        command="advance",
        application_args=[],
        engine="spark",
        entry_point=str(script),
    )
    processes: list[psutil.Process] = []

    def has_a_driver() -> bool:
        if started.is_file() and (pid := started.read_text()):
            processes.append(psutil.Process(int(pid)))
        return bool(processes)

    failed = kill_once(task, has_a_driver)
    (driver,), jvm = processes, task._runner.operator._hook._submit_sp
    psutil.wait_procs([driver], timeout=10)
    assert not driver.is_running() and jvm.poll() is not None
    assert failed == 1, "a killed task must not look like one that has succeeded"
    jvm.stdout.close()
