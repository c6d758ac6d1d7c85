"""What the DAGs' tasks ask the jobs for, as the argv of `strandline`.

These are called when a task is rendered, and give whole arguments: what a user typed is validated,
becomes one element of the argv, and is never read as a template, an option or a path.
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
"""The tasks that others ask for what they have said."""
_BY_ASSET = {"asset_triggered", "asset_materialization"}
"""Types of runs that an asset, or somebody who wants it made, has triggered."""
_PREVIEW_ROWS = 100
"""Of each kind: a preview lies in the log and in Airflow's database."""
Rendered = Callable[..., Any]
"""A template field that Airflow calls with the context in place of rendering it."""


def advance_request(pipeline: str) -> Rendered:
    """`strandline advance`: up to the run's horizon."""

    def argv(context: Context, **_: object) -> list[str]:
        with _Refusing():
            to = horizon_of(
                context["params"],
                partition_date=context.get("partition_date"),
                data_interval_end=context.get("data_interval_end"),
                run_after=_triggered_at(context),
            )
        may = _allowed(context["params"])
        return [pipeline, f"--to={to}", *may, "--json", *_who_asks(context)]

    return argv


def publish_request(context: Context, **_: object) -> list[str]:
    """`strandline runs publish`: what the task `prepare` has prepared, and nothing else.

    Raises:
        AirflowSkipException: it has found that nothing can change, and has prepared nothing.
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
    """What the task `prepare` has answered.

    Raises:
        AirflowFailException: nothing that it can be known by.
    """
    answer = context["ti"].xcom_pull(task_ids=PREPARE)
    if not (isinstance(answer, Mapping) and {"status", "pipeline", "run_id"} <= answer.keys()):
        raise AirflowFailException(f"the task {PREPARE} has not said what it prepared: clear it")
    return answer


def options_of(argv: Iterable[object]) -> dict[str, str]:
    """The options with a value that the arguments of a job name, such as `to` of `--to=…`."""
    words = [str(one) for one in argv]
    named = [word for word in words if word.startswith("--") and "=" in word]
    return dict(word.removeprefix("--").split("=", 1) for word in named)


def requested_range(argv: Iterable[object]) -> TimeRange | None:
    """The range that the arguments of a job name; None: they name none.

    Raises:
        InputError: its ends are no instants, or in the wrong order.
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
    """What the params of a run ask for, of the pipelines of a folder.

    Attributes:
        folder: of the pipeline files; None: as the connection or the environment says.
    """

    folder: str | Path | None = None

    def backfill(self, *, prepare: bool) -> Rendered:
        """`strandline backfill`: the range of the params; or what it would publish is prepared."""

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
                *_who_asks(context),
            ]

        return argv

    def reported(self, context: Any) -> list[str]:
        """The pipelines to report on: the param's; else those that triggered the run; else all."""
        if context["params"]["pipeline"] != ALL:
            return [self.pipeline(context)]
        events = context.get("triggering_asset_events") or {}
        triggered = {event.asset.name for of_asset in events.values() for event in of_asset}
        names = self._specs()
        return [name for name in names if not triggered or published_asset(name).name in triggered]

    def maintained(self, context: Context, **_: object) -> str:
        """The pipeline that the param `pipeline` names, or `ALL`."""
        return ALL if context["params"]["pipeline"] == ALL else self.pipeline(context)

    def pipeline(self, context: Context, **_: object) -> str:
        """The name of the pipeline that the param `pipeline` names."""
        return self.spec(context).pipeline

    def spark_conf(self, context: Context, **_: object) -> dict[str, str]:
        """The Spark configuration of the pipeline that the param `pipeline` names."""
        return dict(self.spec(context).spark)

    def spec(self, context: Context) -> PipelineSpec:
        """The pipeline that the param `pipeline` names.

        Raises:
            AirflowFailException: there is none of that name.
        """
        specs = self._specs()
        with _Refusing():
            return specs[pipeline_of(context["params"], specs)]

    def _specs(self) -> Mapping[str, PipelineSpec]:
        with _Refusing():
            folder = pipelines_folder(self.folder)
        return read_catalogue(folder).specs


def is_dry_run(context: Context, **_: object) -> bool:
    """What the param `dry_run` says."""
    return bool(context["params"]["dry_run"])


def requested_engine(context: Context, **_: object) -> str:
    """The engine that the param `engine` names; empty: it names none, or there is no such param."""
    return str(context["params"].get("engine") or "")


def _triggered_at(context: Context) -> datetime | None:
    """When a run was due that an asset has triggered; None: no asset has.

    Of an asset that is only named (`Asset.ref`) the run has no `triggering_asset_events`.
    """
    dag_run = context["dag_run"]
    return dag_run.run_after if dag_run.run_type.value in _BY_ASSET else None


def _allowed(params: Mapping[str, Any]) -> list[str]:
    """What the run may do that it else may not, and what it else would not do."""
    names = ("allow_removals", "force", "recreate")
    return [f"--{name.replace('_', '-')}" for name in names if params.get(name)]


def _shown_first(params: Mapping[str, Any]) -> list[str]:
    """That a run publishes nothing yet: what it would is prepared, or only shown."""
    how = "--dry-run" if params.get("preview") else "--prepare"
    return [how, f"--preview-rows={_PREVIEW_ROWS}"]


def _overrides(params: Mapping[str, Any]) -> list[str]:
    """What the run goes by in place of what the pipeline's file says."""
    names = ("allowed_lateness", "bound")
    return [f"--{name.replace('_', '-')}={params[name]}" for name in names if params.get(name)]


def _who_asks(context: Context) -> list[str]:
    dag_run = context["dag_run"]
    return [
        f"--run-key={dag_run.dag_id}/{dag_run.run_id}",
        f"--requested-by={_requester(context)}",
    ]


def _requester(context: Context) -> str:
    dag_run = context["dag_run"]
    return f"airflow: {dag_run.triggering_user_name or dag_run.run_type.value}"


class _Refusing:
    """Turns wrong input into a failure that is not retried: the params will not change."""

    def __enter__(self) -> None: ...

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, InputError):
            raise AirflowFailException(str(error)) from None
