"""A command as an application of the Spark operator on Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException

from strandline_airflow import settings
from strandline_airflow.outcomes import failure_of
from strandline_airflow.processes import PlainProcess
from strandline_airflow.submit import SparkOnKubernetes, SubmitSpec, as_spark_kubernetes

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

_EXIT_CODE = re.compile(r"exit_?[cC]ode\W+(\d+)")
"""The exit code in the container's state, which the provider's error quotes."""


class KubernetesRunner:
    """Runs a command by the Kubernetes provider's operator.

    The JSON document of the command stays in the cluster. The result is read from the pipeline's
    ledger, so the Airflow worker needs access to the lake.
    """

    def __init__(self, log: Logger, on: SparkOnKubernetes, submit: Mapping[str, Any]) -> None:
        self._log = log
        self._on = on
        self._submit = submit
        self._operator: SparkKubernetesOperator | None = None

    def run(self, spec: SubmitSpec, context: Context) -> Any:
        """See Runner."""
        arguments = as_spark_kubernetes(self._on.seen_from(spec), self._on)
        self._operator = SparkKubernetesOperator(task_id="submit", **{**arguments, **self._submit})
        try:
            self._operator.execute(context)
        except AirflowException as error:
            found = _EXIT_CODE.search(str(error))
            if found is None:
                raise
            raise failure_of(spec.title, int(found[1]), str(error).splitlines()) from None
        return self._answer(spec)

    def end(self) -> None:
        """See Runner."""
        if self._operator is not None:
            self._operator.on_kill()

    def _answer(self, spec: SubmitSpec) -> Any:
        """The run in the ledger; None if it is not there."""
        pipeline = spec.arguments[len(spec.title.split()) - 1]
        asked = [str(settings.executable()), "runs", "list", pipeline, "--json"]
        done = PlainProcess().run(asked, spec.environment, self._log)
        shared = sha256(spec.run_id.encode()).hexdigest()[:10]
        listed = [] if done.exit_code else done.answer
        runs = [run for run in listed if run["run_id"].startswith(shared)]
        return {"pipeline": pipeline, **runs[0]} if runs else None
