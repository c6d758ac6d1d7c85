"""The arguments of `strandline` for the tasks of the DAGs.

The functions are called when a task is rendered. Text that a user typed is validated and becomes
one element of the argument list; it is never read as a template, an option or a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from strandline.errors import InputError
from strandline.model.command import option_of
from strandline.spec import PipelineSpec
from strandline_airflow.catalogue import published_asset, read_catalogue
from strandline_airflow.params import ALL, horizon_of, pipeline_of, range_options
from strandline_airflow.settings import pipelines_folder

PREPARE, APPROVAL = "prepare", "approval"
"""The ids of the tasks whose XComs other tasks read, unless an operator names others."""
_BY_ASSET = {"asset_triggered", "asset_materialization"}
"""The types of DAG runs that an asset event, or a user who materializes an asset, triggers."""
_PREVIEW_ROWS = 100
"""Rows of each kind in a preview, which is kept in the task's log and in Airflow's database."""
Rendered = Callable[..., Any]
"""The value of a template field: a function that Airflow calls with the context to render it."""


def advance_request(pipeline: str) -> Rendered:
    """The arguments of `strandline advance` up to the DAG run's horizon."""

    def argv(context: Context, **_: object) -> list[str]:
        with _fail_on_input_error():
            to = horizon_of(
                context["params"],
                partition_date=context.get("partition_date"),
                data_interval_end=context.get("data_interval_end"),
                run_after=_triggered_at(context),
            )
        flags = _flags(context["params"])
        return [pipeline, f"--to={to}", *flags, "--json", *_provenance(context)]

    return argv


def publish_request(prepare: str, approval: str) -> Rendered:
    """The arguments of `strandline runs publish` for a prepared run.

    They raise AirflowSkipException where nothing is prepared, since nothing would change.

    Args:
        prepare: the id of the task that has prepared it.
        approval: the id of the task that has asked a person, if one was asked.
    """

    def argv(context: Context, **_: object) -> list[str]:
        prepared = prepared_by(context, prepare)
        if prepared["status"] != "prepared":
            raise AirflowSkipException(f"{prepare}: {prepared['status']}, nothing to publish")
        person = approver_of(context, approval)
        by = f", approved by {person}" if person else ""
        requester = f"--requested-by={_requester(context)}{by}"
        return [prepared["pipeline"], prepared["run_id"], requester, "--json"]

    return argv


def approver_of(context: Context, approval: str) -> str | None:
    """The name of the person who has approved, by the XCom of a task; None: nobody was asked."""
    approved = context["ti"].xcom_pull(task_ids=approval)
    return str(approved["responded_by_user"]["name"]) if approved else None


def prepared_by(context: Context, prepare: str) -> Mapping[str, Any]:
    """The JSON document of a prepared run, in the XCom of the task that has prepared it.

    Raises:
        AirflowFailException: there is no XCom, or it lacks the status, pipeline or run's id.
    """
    answer = context["ti"].xcom_pull(task_ids=prepare)
    if not (isinstance(answer, Mapping) and {"status", "pipeline", "run_id"} <= answer.keys()):
        problem = (
            f"the task {prepare} has left no result (XCom): clear it, so that it runs again; if it "
            "runs on a cluster, Airflow's workers have to reach the lake, where it leaves it"
        )
        raise AirflowFailException(problem)
    return answer


def options_of(argv: Iterable[object]) -> dict[str, str]:
    """The options with a value in a command's arguments, such as `to` of `--to=…`."""
    words = [str(one) for one in argv]
    named = [word for word in words if word.startswith("--") and "=" in word]
    return dict(word.removeprefix("--").split("=", 1) for word in named)


@dataclass(frozen=True)
class Requests:
    """The requests in the params of a DAG run, for the pipelines of a folder.

    Attributes:
        folder: the folder of the pipeline files; None: from the connection or the environment.
    """

    folder: str | Path | None = None

    def backfill(self, *, prepare: bool) -> Rendered:
        """The arguments of `strandline backfill` for the params' range.

        Args:
            prepare: whether the run is only prepared, or previewed, and not published.
        """

        def argv(context: Context, **_: object) -> list[str]:
            params = context["params"]
            with _fail_on_input_error():
                of_range = range_options(params)
            return [
                self.spec(context).pipeline,
                *of_range,
                *(_dry_or_prepared(params) if prepare else ()),
                *_overrides(params),
                *_flags(params),
                f"--reason={params['reason']}",
                "--json",
                *_provenance(context),
            ]

        return argv

    def pipelines_to_report(self, context: Any) -> list[str]:
        """The names of the pipelines to report on.

        The pipeline of the param; else the pipelines whose asset events triggered the DAG run;
        else all pipelines.
        """
        if context["params"]["pipeline"] != ALL:
            return [self.pipeline(context)]
        events = context.get("triggering_asset_events") or {}
        triggered = {event.asset.name for of_asset in events.values() for event in of_asset}
        names = self._specs()
        return [name for name in names if not triggered or published_asset(name).name in triggered]

    def pipeline_to_maintain(self, context: Context, **_: object) -> str:
        """The name in the param `pipeline`, or `ALL`."""
        return ALL if context["params"]["pipeline"] == ALL else self.pipeline(context)

    def pipeline(self, context: Context, **_: object) -> str:
        """The name in the param `pipeline`."""
        return self.spec(context).pipeline

    def spark_conf(self, context: Context, **_: object) -> dict[str, str]:
        """The Spark settings of the pipeline in the param `pipeline`."""
        return dict(self.spec(context).spark)

    def spec(self, context: Context) -> PipelineSpec:
        """The pipeline in the param `pipeline`.

        Raises:
            AirflowFailException: no valid pipeline has this name.
        """
        specs = self._specs()
        with _fail_on_input_error():
            return specs[pipeline_of(context["params"], specs)]

    def _specs(self) -> Mapping[str, PipelineSpec]:
        with _fail_on_input_error():
            folder = pipelines_folder(self.folder)
        return read_catalogue(folder).specs


def is_dry_run(context: Context, **_: object) -> bool:
    """The value of the param `dry_run`."""
    return bool(context["params"]["dry_run"])


def requested_engine(context: Context, **_: object) -> str:
    """The value of the param `engine`; empty if it is null, or the DAG has no such param."""
    return str(context["params"].get("engine") or "")


def _triggered_at(context: Context) -> datetime | None:
    """The `run_after` of a DAG run that an asset triggered; None for every other run.

    The run's type is asked, since a run triggered by an `Asset.ref` has no
    `triggering_asset_events`.
    """
    dag_run = context["dag_run"]
    return dag_run.run_after if dag_run.run_type.value in _BY_ASSET else None


def _flags(params: Mapping[str, Any]) -> list[str]:
    """The boolean options of a run that the params switch on, such as `--force`."""
    names = ("allow_removals", "force", "recreate")
    return [option_of(name) for name in names if params.get(name)]


def _dry_or_prepared(params: Mapping[str, Any]) -> list[str]:
    """The options of a run that publishes nothing: `--dry-run` or `--prepare`, and its preview."""
    how = "--dry-run" if params.get("preview") else "--prepare"
    return [how, f"--preview-rows={_PREVIEW_ROWS}"]


def _overrides(params: Mapping[str, Any]) -> list[str]:
    """The options that override rules of the pipeline's file for this run."""
    names = ("allowed_lateness", "bound")
    return [f"{option_of(name)}={params[name]}" for name in names if params.get(name)]


def _provenance(context: Context) -> list[str]:
    dag_run = context["dag_run"]
    return [
        f"--run-key={dag_run.dag_id}/{dag_run.run_id}",
        f"--requested-by={_requester(context)}",
    ]


def _requester(context: Context) -> str:
    dag_run = context["dag_run"]
    return f"airflow: {dag_run.triggering_user_name or dag_run.run_type.value}"


@contextmanager
def _fail_on_input_error() -> Iterator[None]:
    """Turn an InputError into a failure without retries: a retry would have the same params."""
    try:
        yield
    except InputError as error:
        raise AirflowFailException(str(error)) from None
