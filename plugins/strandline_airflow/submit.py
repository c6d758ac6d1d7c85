"""A command to run, and its form for each place where it can run, as pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

DRIVER_MEMORY = "spark.driver.memory"
_OF_KUBERNETES = {
    "spark.driver.cores": ("driver", "cores"),
    DRIVER_MEMORY: ("driver", "memory"),
    "spark.executor.cores": ("executor", "cores"),
    "spark.executor.instances": ("executor", "instances"),
    "spark.executor.memory": ("executor", "memory"),
}
"""Settings that the Spark operator's application has as fields."""
_LONGEST_NAME = 40
"""The longest name in characters; with the operator's suffixes a pod's name has at most 63."""


@dataclass(frozen=True)
class SubmitSpec:
    """A `strandline` command, independent of where it runs.

    Attributes:
        entry_point: the file that starts it as a Spark application; a path on the driver's machine.
        arguments: the command and its arguments.
        run_id: the key of Airflow's DAG run; the same for each try of a task.
        archives: packed environments that Spark unpacks beside each executor, as `file#folder`.
        conf: Spark's settings.
        environment: the driver's environment variables; they may hold a token.
        is_short: whether the run is too short for a JVM to warm up, so that it should compile less.
    """

    entry_point: str
    arguments: tuple[str, ...]
    run_id: str = ""
    archives: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_short: bool = False

    @property
    def title(self) -> str:
        """The command as a message names it, such as `strandline runs publish`."""
        return f"strandline {' '.join(self._words)}"

    @property
    def name(self) -> str:
        """The application's name in Spark's UI, such as `strandline-publish`."""
        return f"strandline-{self._words[-1]}"

    @property
    def first_argument(self) -> str:
        """The first argument of the command: the pipeline's name."""
        return self.arguments[len(self._words)]

    @property
    def _words(self) -> tuple[str, ...]:
        return self.arguments[: 2 if self.arguments[0] == "runs" else 1]


def as_spark_submit(spec: SubmitSpec) -> dict[str, Any]:
    """The arguments of the Spark provider's `SparkSubmitOperator`."""
    return {
        "application": spec.entry_point,
        "application_args": list(spec.arguments),
        "archives": ",".join(spec.archives) or None,
        "conf": dict(spec.conf),
        "env_vars": dict(spec.environment),
        "name": spec.name,
    }


@dataclass(frozen=True)
class SparkOnKubernetes:
    """A Kubernetes cluster with the Spark operator, and the image of driver and executors.

    Attributes:
        image: an image with Spark, Python and `strandline[spark]`.
        namespace: the application's namespace.
        service_account: the driver's service account, which may create pods.
        spark_version: the image's version of Spark.
        connection: the id of the cluster's Airflow connection.
        entry_point: the file in the image that starts the command.
        pipelines: the folder of the pipeline files in the image.
    """

    image: str
    namespace: str = "default"
    service_account: str = "spark"
    spark_version: str = "4.2.0"
    connection: str = "kubernetes_default"
    entry_point: str = "local:///opt/strandline/strandline_job.py"
    pipelines: str = "/opt/strandline/pipelines"

    def with_its_paths(self, spec: SubmitSpec) -> SubmitSpec:
        """The command with the image's paths in place of this machine's."""
        environment = {**spec.environment, "STRANDLINE_PIPELINES": self.pipelines}
        return replace(spec, entry_point=self.entry_point, environment=environment)


def as_spark_application(spec: SubmitSpec, on: SparkOnKubernetes) -> dict[str, Any]:
    """The document of an application, `sparkoperator.k8s.io/v1beta2`.

    The operator does not retry it: Airflow decides on retries by the exit code.
    """
    pods: dict[str, dict[str, Any]] = {
        "driver": {"cores": 1, "memory": "4g", "serviceAccount": on.service_account},
        "executor": {"cores": 1, "instances": 1, "memory": "2g"},
    }
    for name, (pod, its_field) in _OF_KUBERNETES.items():
        if name in spec.conf:
            value = spec.conf[name]
            pods[pod][its_field] = value if its_field == "memory" else int(value)
    pods["driver"]["env"] = [
        {"name": name, "value": value} for name, value in sorted(spec.environment.items())
    ]
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": _object_name(spec), "namespace": on.namespace},
        "spec": {
            "type": "Python",
            "pythonVersion": "3",
            "mode": "cluster",
            "sparkVersion": on.spark_version,
            "image": on.image,
            "mainApplicationFile": spec.entry_point,
            "arguments": list(spec.arguments),
            "sparkConf": {k: v for k, v in spec.conf.items() if k not in _OF_KUBERNETES},
            "deps": {"archives": list(spec.archives)} if spec.archives else {},
            "restartPolicy": {"type": "Never"},
            **pods,
        },
    }


def as_spark_kubernetes(spec: SubmitSpec, on: SparkOnKubernetes) -> dict[str, Any]:
    """The arguments of the Kubernetes provider's `SparkKubernetesOperator`."""
    return {
        "name": _object_name(spec),
        "namespace": on.namespace,
        "template_spec": {"spark": as_spark_application(spec, on)},
        "kubernetes_conn_id": on.connection,
        "get_logs": True,
    }


def _object_name(spec: SubmitSpec) -> str:
    """The application's name in Kubernetes: letters, digits and dashes, unique for each run."""
    of_run = sha256(spec.run_id.encode()).hexdigest()[:10]
    return f"{spec.name[: _LONGEST_NAME - len(of_run) - 1].rstrip('-')}-{of_run}"
