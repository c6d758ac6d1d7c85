"""A command as an application of the Spark operator on Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException

from strandline_airflow.answers_in_lake import AnswerInLake
from strandline_airflow.outcomes import exit_code_of, failure_of
from strandline_airflow.submit import SparkOnKubernetes, SubmitSpec, as_spark_kubernetes

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

_EXIT_CODE = re.compile(r"exit_?[cC]ode\W+(\d+)")
"""The exit code in the container's state, which the provider's error quotes."""


class KubernetesRunner:
    """Runs a command by the Kubernetes provider's operator.

    The driver leaves its JSON document in the lake, which the Airflow worker has to reach.
    """

    def __init__(self, log: Logger, on: SparkOnKubernetes, submit: Mapping[str, Any]) -> None:
        self._log = log
        self._on = on
        self._submit = submit
        self._operator: SparkKubernetesOperator | None = None

    def run(self, spec: SubmitSpec, context: Context) -> Any:
        """See Runner."""
        answer = AnswerInLake(spec, self._log)
        there = replace(spec, environment={**spec.environment, **answer.environment})
        arguments = as_spark_kubernetes(self._on.with_its_paths(there), self._on)
        self._operator = SparkKubernetesOperator(task_id="submit", **{**arguments, **self._submit})
        try:
            self._operator.execute(context)
        except AirflowException as error:
            found, document = _EXIT_CODE.search(str(error)), answer.read()
            exit_code = exit_code_of(document) or (int(found[1]) if found else None)
            if exit_code is None:
                raise
            output = str(error).splitlines()
            raise failure_of(spec.title, exit_code, output, document) from None
        return answer.read()

    def end(self) -> None:
        """See Runner."""
        if self._operator is not None:
            self._operator.on_kill()
