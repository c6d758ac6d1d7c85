"""The arguments of `strandline` for the tasks of the DAGs.

The functions are called when a task is rendered. Text that a user typed is validated and becomes
one element of the argument list; it is never read as a template, an option or a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from strandline.errors import InputError
from strandline.model.intervals import TimeRange
from strandline.spec import PipelineSpec
from strandline.spec.values import parse_instant
from strandline_airflow.catalogue import published_asset, read_catalogue
from strandline_airflow.params import ALL
from strandline_airflow.ranges import horizon_of, pipeline_of, range_of
from strandline_airflow.settings import pipelines_folder

PREPARE, APPROVAL = "prepare", "approval"
"""The ids of the tasks whose XComs other tasks read."""
_BY_ASSET = {"asset_triggered", "asset_materialization"}
"""The types of DAG runs that an asset event, or a user who materializes an asset, triggers."""
_PREVIEW_ROWS = 100
"""Rows of each kind in a preview, which is kept in the task's log and in Airflow's database."""
Rendered = Callable[..., Any]
"""A template field that is a callable: Airflow calls it with the context."""


def advance_request(pipeline: str) -> Rendered:
    """The arguments of `strandline advance` up to the DAG run's horizon."""

    def argv(context: Context, **_: object) -> list[str]:
        with _Refusing():
            to = horizon_of(
                context["params"],
                partition_date=context.get("partition_date"),
                data_interval_end=context.get("data_interval_end"),
                run_after=_triggered_at(context),
            )
        may = _allowed(context["params"])
        return [pipeline, f"--to={to}", *may, "--json", *_requested_as(context)]

    return argv


def publish_request(context: Context, **_: object) -> list[str]:
    """The arguments of `strandline runs publish` for the run of the task `prepare`.

    Raises:
        AirflowSkipException: nothing is prepared, since nothing would change.
    """
    prepared = prepared_by(context)
    if prepared["status"] != "prepared":
        raise AirflowSkipException(f"{PREPARE}: {prepared['status']}, nothing to publish")
    approved = context["ti"].xcom_pull(task_ids=APPROVAL)
    by = f", approved by {approved['responded_by_user']['name']}" if approved else ""
    return [
        prepared["pipeline"],
        prepared["run_id"],
        f"--requested-by={_requester(context)}{by}",
        "--json",
    ]


def prepared_by(context: Context) -> Mapping[str, Any]:
    """The JSON document of the task `prepare`.

    Raises:
        AirflowFailException: the task has left none, or one without the run's id.
    """
    answer = context["ti"].xcom_pull(task_ids=PREPARE)
    if not (isinstance(answer, Mapping) and {"status", "pipeline", "run_id"} <= answer.keys()):
        raise AirflowFailException(f"the task {PREPARE} has not said what it prepared: clear it")
    return answer


def options_of(argv: Iterable[object]) -> dict[str, str]:
    """The options with a value in a command's arguments, such as `to` of `--to=…`."""
    words = [str(one) for one in argv]
    named = [word for word in words if word.startswith("--") and "=" in word]
    return dict(word.removeprefix("--").split("=", 1) for word in named)


def requested_range(argv: Iterable[object]) -> TimeRange | None:
    """The range in a command's arguments; None if they have none.

    Raises:
        InputError: an end is not an instant, or the start is not before the end.
    """
    options = options_of(argv)
    if not {"start", "end"} <= options.keys():
        return None
    try:
        return TimeRange(parse_instant(options["start"]), parse_instant(options["end"]))
    except (ValueError, OverflowError) as error:
        raise InputError("--start, --end", str(error)) from None


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
            with _Refusing():
                asked = range_of(params)
            return [
                self.spec(context).pipeline,
                f"--start={asked.start}",
                f"--end={asked.end}",
                *([f"--as-of={asked.as_of}"] if asked.as_of else []),
                *(_shown_first(params) if prepare else ()),
                *_overrides(params),
                *_allowed(params),
                f"--reason={params['reason']}",
                "--json",
                *_requested_as(context),
            ]

        return argv

    def reported(self, context: Any) -> list[str]:
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

    def maintained(self, context: Context, **_: object) -> str:
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
        with _Refusing():
            return specs[pipeline_of(context["params"], specs)]

    def _specs(self) -> Mapping[str, PipelineSpec]:
        with _Refusing():
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


def _allowed(params: Mapping[str, Any]) -> list[str]:
    """The flags of the run that are switched on."""
    names = ("allow_removals", "force", "recreate")
    return [f"--{name.replace('_', '-')}" for name in names if params.get(name)]


def _shown_first(params: Mapping[str, Any]) -> list[str]:
    """The options of a run that publishes nothing: it is prepared, or only previewed."""
    how = "--dry-run" if params.get("preview") else "--prepare"
    return [how, f"--preview-rows={_PREVIEW_ROWS}"]


def _overrides(params: Mapping[str, Any]) -> list[str]:
    """The options that override rules of the pipeline's file for this run."""
    names = ("allowed_lateness", "bound")
    return [f"--{name.replace('_', '-')}={params[name]}" for name in names if params.get(name)]


def _requested_as(context: Context) -> list[str]:
    dag_run = context["dag_run"]
    return [
        f"--run-key={dag_run.dag_id}/{dag_run.run_id}",
        f"--requested-by={_requester(context)}",
    ]


def _requester(context: Context) -> str:
    dag_run = context["dag_run"]
    return f"airflow: {dag_run.triggering_user_name or dag_run.run_type.value}"


class _Refusing:
    """Turns an InputError into a failure without retries, since the params will not change."""

    def __enter__(self) -> None: ...

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, InputError):
            raise AirflowFailException(str(error)) from None
