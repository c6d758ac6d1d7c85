"""A command to be run, apart from where it runs; and its form for each place: pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from strandline_airflow.answers import NO_FILE

DRIVER_MEMORY = "spark.driver.memory"
_OF_KUBERNETES = {
    "spark.driver.cores": ("driver", "cores"),
    DRIVER_MEMORY: ("driver", "memory"),
    "spark.executor.cores": ("executor", "cores"),
    "spark.executor.instances": ("executor", "instances"),
    "spark.executor.memory": ("executor", "memory"),
}
"""Settings that an application of Spark's operator has fields of its own for."""
_LONGEST_NAME = 40
"""Signs: its pods' names have the operator's suffixes behind it, and 63 at most."""


@dataclass(frozen=True)
class SubmitSpec:
    """A `strandline` command that is to run somewhere.

    Attributes:
        entry_point: the file that starts it as a Spark application, by its path where the driver
            will be.
        arguments: the command and its arguments, as `strandline` takes them.
        run_id: names the run of Airflow that asks for it; the same for each try of a task.
        archives: packed environments that Spark unpacks beside each executor, as `file#folder`.
        conf: Spark's settings.
        environment: the driver's variables; they may hold a token.
        is_short: whether the run is over before a JVM would have warmed up.
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
        """The command in a message, such as `strandline runs publish`."""
        return f"strandline {' '.join(self._words)}"

    @property
    def name(self) -> str:
        """The application's name in Spark's pages, such as `strandline-publish`."""
        return f"strandline-{self._words[-1]}"

    @property
    def _words(self) -> tuple[str, ...]:
        return self.arguments[: 2 if self.arguments[0] == "runs" else 1]

    def on_master(self, master: str) -> SubmitSpec:
        """The same with a Spark master, for a process that starts Spark itself."""
        return replace(self, arguments=(*self.arguments, f"--master={master}"))


def as_process(spec: SubmitSpec, executable: str) -> list[str]:
    """The argv of a plain process: the command itself starts its engine, or asks a server.

    The settings are not handed over: the command reads the pipeline's own.
    """
    return [executable, *spec.arguments]


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
    """Where Spark's operator is, and the image that has Strandline.

    Attributes:
        image: with Spark, Python and `strandline[spark]`; driver and executors run it.
        namespace: of the application.
        service_account: the driver's, which may create pods.
        spark_version: of the image.
        connection: Airflow's, of the cluster.
        entry_point: the file of the image that starts the command.
        pipelines: the image's folder of the pipeline files.
    """

    image: str
    namespace: str = "default"
    service_account: str = "spark"
    spark_version: str = "4.2.0"
    connection: str = "kubernetes_default"
    entry_point: str = "local:///opt/strandline/strandline_job.py"
    pipelines: str = "/opt/strandline/pipelines"

    def seen_from(self, spec: SubmitSpec) -> SubmitSpec:
        """A command as it has to be asked for there: files are the image's."""
        environment = {**spec.environment, "STRANDLINE_PIPELINES": self.pipelines}
        return replace(spec, entry_point=self.entry_point, environment=environment)


def as_spark_application(spec: SubmitSpec, on: SparkOnKubernetes) -> dict[str, Any]:
    """The document of an application, `sparkoperator.k8s.io/v1beta2`.

    It is tried once: whether it is tried again, Airflow decides by the exit code.
    """
    pods: dict[str, dict[str, Any]] = {
        "driver": {"cores": 1, "memory": "4g", "serviceAccount": on.service_account},
        "executor": {"cores": 1, "instances": 1, "memory": "2g"},
    }
    for name, (pod, its_field) in _OF_KUBERNETES.items():
        if name in spec.conf:
            value = spec.conf[name]
            pods[pod][its_field] = value if its_field == "memory" else int(value)
    environment = {**spec.environment, **NO_FILE}
    pods["driver"]["env"] = [
        {"name": name, "value": value} for name, value in sorted(environment.items())
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
    """A name as Kubernetes takes it: letters, digits and dashes; of each run another."""
    of_run = sha256(spec.run_id.encode()).hexdigest()[:10]
    return f"{spec.name[: _LONGEST_NAME - len(of_run) - 1].rstrip('-')}-{of_run}"
