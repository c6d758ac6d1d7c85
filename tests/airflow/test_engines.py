"""Which engine a task runs on, how its process gets to know, and how it ends."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import psutil
import pytest
from job_calls import FORM, kill_once
from processes import command_line

pytestmark = pytest.mark.airflow
END = datetime(2013, 1, 15, 6, tzinfo=UTC)
SERVER = "sc://spark.example:15002"
TOKEN = "a-token-that-nobody-may-see"


@pytest.fixture
def connection(monkeypatch):
    """Makes the connection that says which engine there is."""

    def connection(**fields):
        said = json.dumps({"conn_type": "spark_connect", **fields})
        monkeypatch.setenv("AIRFLOW_CONN_STRANDLINE_ENGINE", said)

    return connection


@pytest.fixture
def lake(own_flights_lake, monkeypatch):
    """Where the flights of 2013 have landed."""
    monkeypatch.setenv("STRANDLINE_LAKE", str(own_flights_lake))


@pytest.fixture
def of_file(tmp_path, home, monkeypatch):
    """Makes the file of the pipeline `flights` name an engine."""

    def of_file(engine):
        text = (home / "pipelines" / "flights.yaml").read_text(encoding="utf-8")
        (tmp_path / "flights.yaml").write_text(f"{text}\nengine: {engine}\n", encoding="utf-8")
        monkeypatch.setenv("STRANDLINE_PIPELINES", str(tmp_path))

    return of_file


def test_the_param_wins_over_the_connection_and_that_over_environment_and_file(
    bag, connection, of_file, monkeypatch
):
    from strandline_airflow.engines import engine_of_task

    def chosen(asked=""):
        return engine_of_task(asked, "flights").name

    assert chosen() == "spark"
    of_file("sail")
    assert chosen() == "sail"
    monkeypatch.setenv("STRANDLINE_ENGINE", "spark")
    assert chosen() == "spark"
    connection(extra={"engine": "connect", "remote": SERVER})
    assert chosen() == "connect"
    assert chosen("sail") == "sail"


@pytest.mark.parametrize(
    ("fields", "remote"),
    [
        ({"extra": {"remote": SERVER}}, SERVER),
        ({"host": "spark.example"}, SERVER),
        ({"host": "spark.example", "port": 7}, "sc://spark.example:7"),
        ({"host": "spark.example", "extra": {"use_ssl": True}}, f"{SERVER}/;use_ssl=true"),
    ],
)
def test_a_connection_says_where_the_server_is(bag, connection, fields, remote):
    from strandline_airflow.engines import engine_of_task

    connection(**fields)
    engine = engine_of_task("connect", None)
    said = {"STRANDLINE_ENGINE": "connect", "STRANDLINE_REMOTE": remote}
    assert engine.environment == said
    assert remote not in repr(engine)
    assert engine_of_task("spark", None).environment == {"STRANDLINE_ENGINE": "spark"}


def test_whether_a_machine_is_trusted_is_said_by_the_connection_before_the_environment(
    bag, connection, monkeypatch
):
    from strandline_airflow.engines import engine_of_task

    def trusted():
        return engine_of_task("sail", None).environment["STRANDLINE_TRUST_THIS_MACHINE"]

    assert trusted() == "0"
    monkeypatch.setenv("STRANDLINE_TRUST_THIS_MACHINE", "1")
    assert trusted() == "1"
    connection(extra={"trust_this_machine": False})
    assert trusted() == "0"


@pytest.mark.parametrize("hostile", ["sail; rm -rf", "Sail", "sail\n", "{{ 7 }}", ["sail"], 7])
def test_a_hostile_engine_is_refused_before_anything_is_called(asked, command, submit, hostile):
    from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

    from strandline_airflow.engines import engine_of_task

    for dag, conf in (("strandline_reprocess", FORM), ("strandline_daily_flights", {})):
        with pytest.raises(ParamValidationError, match="engine"):
            asked(dag, conf | {"engine": hostile})
    with pytest.raises(AirflowFailException, match="is no engine"):
        engine_of_task(str(hostile), None)
    assert command.calls == []


@pytest.mark.parametrize("where", ["password", "extra"])
def test_a_token_reaches_the_process_through_its_environment_alone(
    run, execute, command, connection, home, monkeypatch, capsys, where
):
    """Also where the process itself says it, neither log nor XCom shows it."""
    from airflow.sdk._shared.secrets_masker import redact

    from strandline_airflow.commands import StrandlineReportOperator

    monkeypatch.setattr(StrandlineReportOperator, "execute", lambda self, context: "no report")
    token = {"password": TOKEN, "extra": {}} if where == "password" else {"extra": {"token": TOKEN}}
    token["extra"] |= {"engine": "connect", "remote": SERVER}
    connection(**token)
    command.will_say(f"the server wants {TOKEN}")
    command.will_answer({"run_id": TOKEN})
    execute("strandline_daily_flights", "advance", data_interval_end=END)
    said = "".join(capsys.readouterr())
    assert "the server wants ***" in said and TOKEN not in said
    assert redact(f"it is {TOKEN}") == "it is ***"  # for what else Airflow logs
    done = run("strandline_daily_flights", logical_date=END)
    assert done.values["advance"] == {"run_id": "***"}

    noted = command.environments[-1]
    assert noted["SPARK_CONNECT_AUTHENTICATE_TOKEN"] == TOKEN
    assert (noted["STRANDLINE_ENGINE"], noted["STRANDLINE_REMOTE"]) == ("connect", SERVER)
    assert TOKEN not in json.dumps(command.calls)
    assert TOKEN not in json.dumps(done.rendered["advance"])
    assert TOKEN not in "".join(capsys.readouterr())
    kept = [one for one in home.rglob("*") if one.is_file()]  # Airflow's database and logs
    assert kept and not [one for one in kept if TOKEN.encode() in one.read_bytes()]


def test_no_token_is_given_to_another_engine(bag, connection):
    from strandline_airflow.engines import engine_of_task

    connection(password=TOKEN, host="spark.example")
    assert TOKEN not in engine_of_task("sail", None).environment.values()


@pytest.mark.parametrize("engine", ["sail", "connect"])
def test_neither_sail_nor_connect_is_submitted(execute, command, submit, connection, engine):
    connection(host="spark.example")
    command.will_answer({"status": "prepared", "pipeline": "flights", "run_id": "r1-1"})
    answer = execute("strandline_reprocess", "prepare", FORM | {"engine": engine})
    assert answer["run_id"] == "r1-1"
    ((called, pipeline, *rest),) = command.calls
    assert (called, pipeline) == ("backfill", "flights")
    assert {"--json", "--prepare", f"--reason={FORM['reason']}"} < {*rest}
    assert not {"--repeat-only", "--master"} & {*rest}


@pytest.mark.parametrize(
    ("code", "for_good"), [(1, False), (2, True), (3, True), (4, False), (-9, False)]
)
def test_exit_codes_of_a_plain_process_mean_what_those_of_spark_submit_mean(
    execute, command, code, for_good
):
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    command.will_exit_with(code)
    with pytest.raises(AirflowException, match="strandline backfill ended with exit") as caught:
        execute("strandline_reprocess", "prepare", FORM | {"engine": "sail"})
    assert isinstance(caught.value, AirflowFailException) == for_good


def test_connect_without_a_server_fails_for_good_and_says_which_connection_names_it(
    execute, command
):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=r"needs a server.*'strandline_engine'"):
        execute("strandline_reprocess", "prepare", FORM | {"engine": "connect"})
    assert command.calls == []


def test_a_server_that_does_not_answer_is_tried_again_soon(execute, connection, lake):
    """With the real command."""
    from airflow.sdk.exceptions import AirflowException

    connection(extra={"remote": "sc://127.0.0.1:9"})
    began = time.monotonic()
    with pytest.raises(AirflowException, match=r"exit code 4(?s:.*)does not answer") as caught:
        execute("strandline_reprocess", "prepare", FORM | {"engine": "connect"})
    assert type(caught.value) is AirflowException
    assert time.monotonic() - began < 60


def test_killing_a_task_on_sail_ends_the_command_and_its_server(bag, lake):
    from strandline_airflow.operators import StrandlineJobOperator

    asked = ["flights", "--to=2014-01-02", "--json"]
    task = StrandlineJobOperator(
        task_id="year", command="advance", application_args=asked, engine="sail"
    )
    processes: list[psutil.Process] = []

    def has_a_server() -> bool:
        processes[:] = descendants()
        return any("sail_server.py" in command_line(one) for one in processes)

    failed = kill_once(task, has_a_server)
    _, left = psutil.wait_procs(processes, timeout=5)
    assert (left, failed) == ([], 1), "a killed task must not look like one that has succeeded"


def descendants() -> list[psutil.Process]:
    """The processes below this one that run a part of Strandline."""
    below = psutil.Process().children(recursive=True)
    return [one for one in below if one.is_running() and "strandline" in command_line(one)]
