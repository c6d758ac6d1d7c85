"""Where a command runs: its form for each place, held against the operators of the providers."""

from __future__ import annotations

import pytest

from strandline_airflow.submit import (
    SparkOnKubernetes,
    SubmitSpec,
    as_spark_application,
    as_spark_kubernetes,
    as_spark_submit,
)

pytestmark = pytest.mark.airflow

SPEC = SubmitSpec(
    entry_point="/opt/job.py",
    arguments=("runs", "publish", "flights", "r-1", "--json"),
    run_id="manual__2013-02-10",
    archives=("env.tar.gz#env",),
    conf={"spark.executor.instances": "3", "spark.driver.memory": "8g", "spark.x": "$HOME; rm"},
    environment={"STRANDLINE_LAKE": "/lake", "SECRET": "s3cret"},
)
ON = SparkOnKubernetes(image="example/strandline:0.2.0", namespace="jobs")


def test_the_name_is_that_of_the_command_and_the_environment_is_not_shown():
    assert (SPEC.title, SPEC.name) == ("strandline runs publish", "strandline-publish")
    assert "s3cret" not in repr(SPEC)


def test_sparks_own_operator_takes_the_arguments(home):
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    operator = SparkSubmitOperator(task_id="submit", **as_spark_submit(SPEC))
    hook = operator._get_hook()
    command = hook._build_spark_submit_command(SPEC.entry_point)
    place = command.index(SPEC.entry_point)
    assert command[place + 1 :] == [*SPEC.arguments]
    assert command[command.index("--archives") + 1] == "env.tar.gz#env"
    assert "spark.x=$HOME; rm" in command  # one word: no shell reads it


def test_the_operator_of_kubernetes_takes_the_arguments(home):
    from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import (
        SparkKubernetesOperator,
    )

    operator = SparkKubernetesOperator(
        task_id="submit", **as_spark_kubernetes(ON.with_its_paths(SPEC), ON)
    )
    assert operator.template_body["spark"]["kind"] == "SparkApplication"
    assert operator.namespace == "jobs"


def test_an_application_on_kubernetes_has_each_setting_in_one_place_and_is_tried_once():
    document = as_spark_application(ON.with_its_paths(SPEC), ON)
    said = document["spec"]
    assert said["executor"]["instances"] == 3
    assert said["driver"]["memory"] == "8g"
    assert said["sparkConf"] == {"spark.x": "$HOME; rm"}
    assert said["restartPolicy"] == {"type": "Never"}
    assert said["arguments"] == [*SPEC.arguments]
    assert {"name": "STRANDLINE_PIPELINES", "value": ON.pipelines} in said["driver"]["env"]
    assert said["mainApplicationFile"] == ON.entry_point


@pytest.mark.parametrize("run_id", ["", "manual__2013-02-10T00:00:00+00:00", "x" * 250])
def test_an_application_has_a_name_that_kubernetes_takes_and_the_same_for_each_try(run_id):
    import re
    from dataclasses import replace

    names = {
        as_spark_application(replace(SPEC, run_id=run_id), ON)["metadata"]["name"] for _ in "ab"
    }
    assert len(names) == 1
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name := names.pop())
    assert len(name) <= 40


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({"submit": "yarn"}, "'yarn' is none of process, spark-submit, kubernetes"),
        ({"submit": "kubernetes"}, "needs an image"),
        ({"submit": "kubernetes", "kubernetes": {"picture": "x"}}, "picture"),
    ],
)
def test_a_connection_that_names_no_place_is_refused_for_good_and_says_what_it_takes(
    bag, monkeypatch, extra, problem
):
    import json
    import logging

    from airflow.sdk.exceptions import AirflowFailException

    from strandline_airflow.engines import runner_of

    said = json.dumps({"conn_type": "strandline", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_STRANDLINE_ENGINE", said)
    log = logging.getLogger("tests")
    with pytest.raises(AirflowFailException, match=problem):
        runner_of("spark", log, spark_connection="spark_default", submit={})


def test_sail_and_connect_are_plain_processes_whatever_the_connection_submits_by(bag, monkeypatch):
    import logging

    from strandline_airflow.engines import ProcessRunner, runner_of

    monkeypatch.setenv(
        "AIRFLOW_CONN_STRANDLINE_ENGINE",
        '{"conn_type": "strandline", "extra": {"submit": "kubernetes"}}',
    )
    for engine in ("sail", "connect"):
        runner = runner_of(
            engine, logging.getLogger("tests"), spark_connection="spark_default", submit={}
        )
        assert type(runner) is ProcessRunner


@pytest.mark.parametrize("said", [None, "/own/python3"])
def test_a_driver_keeps_its_python_whatever_the_pipeline_says_of_its_workers(
    bag, monkeypatch, said
):
    import sys
    from dataclasses import replace

    from strandline_airflow.spark_submit import _NestedSparkSubmitOperator

    if said:
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", said)
    else:
        monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    of_workers = replace(SPEC, conf={"spark.pyspark.python": "./environment/bin/python"})
    operator = _NestedSparkSubmitOperator(
        task_id="submit", is_short=False, **as_spark_submit(of_workers)
    )
    hook = operator.build_hook()
    command = hook._build_spark_submit_command(SPEC.entry_point)
    python = said or sys.executable
    assert f"spark.pyspark.driver.python={python}" in command
    assert "spark.pyspark.python=./environment/bin/python" in command
    assert hook._env["PYSPARK_DRIVER_PYTHON"] == python  # its script looks for Spark with it


ANSWER = {"status": "published", "findings": [{"severity": "warning", "sentence": "x"}]}
REFUSED = {
    "error": {"kind": "StaleStagingError", "place": "flights", "problem": "is old", "way_out": ""},
    "exit_code": 2,
}


@pytest.fixture
def in_lake(tmp_path):
    """The command over a lake, and a function by which a driver leaves its document there."""
    from dataclasses import replace

    from strandline.cli.json_document import write_document

    def leave(environment, document):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("STRANDLINE_JSON_FILE", environment["STRANDLINE_JSON_FILE"])
            write_document(document)

    return replace(SPEC, environment={"STRANDLINE_LAKE": str(tmp_path / "lake")}), leave


@pytest.fixture(params=["kubernetes", "spark-submit"])
def on_a_cluster(request, bag, in_lake, monkeypatch):
    """Runs the command on a cluster: a driver that leaves a document, and then fails or not."""
    import logging

    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk.exceptions import AirflowException

    from strandline_airflow import kubernetes, spark_submit

    (spec, leave), log = in_lake, logging.getLogger("tests")

    def driver(environment, document, error):
        leave(environment, document)
        if error:
            raise AirflowException(error)

    class Operator:
        def __init__(self, *, template_spec, **_):
            environment = template_spec["spark"]["spec"]["driver"]["env"]
            self.environment = {one["name"]: one["value"] for one in environment}

        def execute(self, context):
            driver(self.environment, *context["driver"])

    said = '{"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}'
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", said)
    monkeypatch.setattr(kubernetes, "SparkKubernetesOperator", Operator)

    def run(document, error=None):
        if request.param == "kubernetes":
            runner = kubernetes.KubernetesRunner(log, ON, {})
            return runner.run(spec, {"driver": (document, error)})
        monkeypatch.setattr(
            SparkSubmitHook, "submit", lambda hook, _: driver(hook._env_vars, document, error)
        )
        return spark_submit.SparkSubmitRunner(log, "spark_default", {}).run(spec, {})

    return run


def test_a_command_on_a_cluster_gives_its_whole_document_by_the_lake(on_a_cluster, tmp_path):
    assert on_a_cluster(ANSWER) == ANSWER
    assert [one for one in (tmp_path / "lake").rglob("*") if one.is_file()] == []


def test_a_command_that_fails_on_a_cluster_fails_its_task_as_it_would_here(on_a_cluster):
    from strandline_airflow.outcomes import StagingIsStaleError

    with pytest.raises(StagingIsStaleError, match=r"exit code 2(?s:.*)is old"):
        on_a_cluster(REFUSED, "the pod failed")
