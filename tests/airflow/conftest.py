"""Airflow with a home, a database, a lake and pipeline files of the tests' own.

No test module here imports Airflow at its top: Airflow reads its settings when it is imported, and
`make test-fast`, which collects these modules too, has no time for it.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

PROJECT = Path(__file__).resolve().parents[2]
SHIPPED = PROJECT / "pipelines" / "flights.yaml"
OTHERS = ("flights_early.yaml", "flights_hourly.yaml", "flights_daily.yaml")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Airflow and what it imports warn about themselves; that is not ours to mend."""
    for item in items:
        if item.get_closest_marker("airflow"):
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="module", autouse=True)
def swept() -> Iterator[None]:
    """What Airflow leaves open is found here, where it is expected, and not in a later test."""
    yield
    with warnings.catch_warnings(action="ignore"):
        gc.collect()


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that holds it all, with the environment pointing into it."""
    folder = tmp_path_factory.mktemp("airflow")
    pipelines = folder / "pipelines"
    pipelines.mkdir()
    shutil.copy(SHIPPED, pipelines)
    for name in OTHERS:
        shutil.copy(SHIPPED.with_name(name), pipelines)
    strict = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    strict |= {"pipeline": "strict", "schedule": None}
    strict["quality"]["max_late_share"] = 0
    strict["spark"] = {"spark.driver.memory": "3g"}
    (pipelines / "strict.yaml").write_text(yaml.safe_dump(strict), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AIRFLOW_HOME": folder,
            "AIRFLOW__CORE__DAGS_FOLDER": PROJECT / "dags",
            "AIRFLOW__CORE__PLUGINS_FOLDER": PROJECT / "plugins",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder}/airflow.db",
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": folder / "logs",
            "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
            # each JVM is over before it would have paid to compile well
            "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "STRANDLINE_LAKE": folder / "lake",
            "STRANDLINE_PIPELINES": pipelines,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }.items():
            patch.setenv(name, str(value))
        yield folder


@pytest.fixture(scope="session")
def database(home: Path) -> None:
    """Airflow's own tables."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture(scope="session")
def bag(database: None) -> Iterator[DagBag]:
    """The project's DAGs over the tests' pipelines; a retry comes at once."""
    from airflow.dag_processing.dagbag import DagBag

    from strandline_airflow import settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "RETRY_DELAY", timedelta(0))
        yield DagBag(PROJECT / "dags")


@dataclass(frozen=True)
class Outcome:
    """What became of a run: its state, and for each task its state, tries, XCom and fields."""

    state: str
    tasks: dict[str, str]
    tries: dict[str, int]
    values: dict[str, Any]
    rendered: dict[str, Any]


@pytest.fixture(scope="session")
def run(bag: DagBag):
    """Runs a DAG to its end, here and now."""
    from airflow.dag_processing.dagbag import DagBag
    from airflow.models.renderedtifields import RenderedTaskInstanceFields

    def run(
        dag_id: str, conf: dict[str, Any] | None = None, logical_date: datetime | None = None
    ) -> Outcome:
        # Read anew: in one process a run's conf stays in the params of the DAG for the next run.
        dag = DagBag(bag.dag_folder).dags[dag_id]
        done = dag.test(logical_date=logical_date, run_conf=conf)
        instances = done.get_task_instances()
        return Outcome(
            state=str(done.state),
            tasks={one.task_id: str(one.state) for one in instances},
            tries={one.task_id: one.try_number for one in instances},
            values={one.task_id: one.xcom_pull(task_ids=one.task_id) for one in instances},
            rendered={
                one.task_id: RenderedTaskInstanceFields.get_templated_fields(one)
                for one in instances
            },
        )

    return run


@pytest.fixture(scope="session")
def flights_lake(home: Path, run) -> Path:
    """A lake where the flights of 2013 have landed, by their own DAG; no table of it to change."""
    assert run("land_flights").state == "success"
    return home / "lake"


@pytest.fixture
def asked(bag: DagBag):
    """The params of a run as Airflow keeps them when the run is created, validated."""
    from airflow.serialization.serialized_objects import DagSerialization

    def asked(dag_id: str, conf: dict[str, Any] | None = None) -> dict[str, Any]:
        dag = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(bag.dags[dag_id]))
        return dag.params.deep_merge(conf).validate()

    return asked


@pytest.fixture
def execute(bag: DagBag, asked):
    """One task alone, as a worker runs it: its fields rendered for a run, then executed."""
    from airflow.sdk.execution_time.context import OutletEventAccessors
    from airflow.utils.types import DagRunType

    def execute(dag_id: str, task_id: str, conf: dict[str, Any] | None = None, **more: Any) -> Any:
        dag_run = SimpleNamespace(
            dag_id=dag_id,
            run_id="manual__2013-01-15",
            run_type=DagRunType.MANUAL,
            triggering_user_name="ann",
        )
        context = {
            "params": asked(dag_id, conf),
            "dag_run": dag_run,
            "outlet_events": OutletEventAccessors(),
            **more,
        }
        task = bag.dags[dag_id].get_task(task_id).prepare_for_execution()
        task.render_template_fields(context)
        return task.execute(context)

    return execute


@pytest.fixture(scope="session")
def client(bag: DagBag) -> Iterator[Any]:
    """Of Airflow's API, without a server of its own."""
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    with TestClient(create_app(apps="core"), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def signed_in_as(client: Any):
    """What a request of a user with some role is known by."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    def signed_in_as(role: str) -> dict[str, str]:
        token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="ann", role=role))
        return {"Authorization": f"Bearer {token}"}

    return signed_in_as


class Stub:
    """Stands in for a program: notes what it is called with, says something, and exits."""

    def __init__(self, folder: Path, name: str) -> None:
        folder = folder / f"stub of {name}"
        folder.mkdir()
        files = (folder / name for name in ("calls", "exits", "says", "answer"))
        self._calls, self._exits, self._says, self._answer = files
        self._calls.touch()
        self._answer.touch()
        self.will_exit_with(0)
        self.will_say("")
        self.program = script = folder / name
        script.write_text(
            f"#!{sys.executable}\n"
            "import json, os, pathlib, sys\n"
            "folder = pathlib.Path(__file__).parent\n"
            "calls = (folder / 'calls').open('a+')\n"
            "calls.write(json.dumps([sys.argv[1:], dict(os.environ)]) + chr(10))\n"
            "calls.seek(0)\n"
            "nth = len(calls.readlines()) - 1\n"
            "exits = json.loads((folder / 'exits').read_text())\n"
            "print((folder / 'says').read_text())\n"
            "answer = (folder / 'answer').read_text()\n"
            "if answer:\n"
            "    pathlib.Path(os.environ['STRANDLINE_JSON_FILE']).write_text(answer)\n"
            "sys.exit(exits[min(nth, len(exits) - 1)])\n",
            encoding="utf-8",
        )
        script.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        """The argv of each call."""
        return [argv for argv, _ in self._noted()]

    @property
    def environments(self) -> list[dict[str, str]]:
        """The environment of each call."""
        return [environment for _, environment in self._noted()]

    def _noted(self) -> list[tuple[list[str], dict[str, str]]]:
        return [json.loads(line) for line in self._calls.read_text().splitlines()]

    def will_exit_with(self, *codes: int) -> None:
        """The exit code of each call to come; the last one of all further ones."""
        self._exits.write_text(json.dumps(codes))

    def will_say(self, text: str) -> None:
        """What each call prints."""
        self._says.write_text(text)

    def will_answer(self, document: Any) -> None:
        """The JSON document that each call writes."""
        self._answer.write_text(json.dumps(document))


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """In place of the real `spark-submit`; no run is a repetition."""
    from strandline_airflow.operators import StrandlineJobOperator

    monkeypatch.setattr(StrandlineJobOperator, "_repeated", lambda task, engine: None)
    stub = Stub(tmp_path, "spark-submit")
    monkeypatch.setenv("PATH", f"{stub.program.parent}{os.pathsep}{os.environ['PATH']}")
    return stub


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """In place of the real `strandline` as a plain process."""
    from strandline_airflow import settings

    stub = Stub(tmp_path, "strandline")
    monkeypatch.setattr(settings, "executable", lambda: stub.program)
    return stub


HITL = "/api/v2/dags/strandline_reprocess/dagRuns/{run}/taskInstances/approval/-1/hitlDetails"


@pytest.fixture
def answered(run, client, signed_in_as):
    """Runs the DAG with an approval that somebody answers; also gives what they were shown."""

    from sqlalchemy.exc import SQLAlchemyError

    def answered(conf, choice):
        seen, headers, done = [], signed_in_as("admin"), threading.Event()

        def answer():
            asked = client.get(
                "/api/v2/dags/strandline_reprocess/dagRuns/~/hitlDetails",
                params={"response_received": False},
                headers=headers,
            ).json()
            for one in asked.get("hitl_details", ()):
                if one["task_instance"]["state"] != "awaiting_input":
                    continue  # an answer before the task waits for it never wakes the task
                at = HITL.format(run=one["task_instance"]["dag_run_id"])
                said = client.patch(at, json={"chosen_options": [choice]}, headers=headers)
                if said.status_code == 200:
                    seen.append(one)

        def answer_in_time():
            """Answer again while the database is too busy: else the run waits for a day."""
            while not seen and not done.is_set():
                time.sleep(0.3)
                with suppress(SQLAlchemyError, ValueError):
                    answer()

        person = threading.Thread(target=answer_in_time)
        person.start()
        try:
            outcome = run("strandline_reprocess", conf | {"approval": True})
        finally:
            done.set()
            person.join()
        return outcome, seen[0]

    return answered
