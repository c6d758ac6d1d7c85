"""The commands.

Exit codes: 0 done, 2 wrong input, 3 audit failed, 4 retryable, 5 `--repeat-only` and not a
repetition, 130 interrupted, 1 anything else.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from strandline.cli import show
from strandline.cli.days import Since, Until, asked_days
from strandline.errors import (
    InputError,
    InterruptedByUserError,
    StrandlineError,
    UnexpectedError,
    problem_of,
)
from strandline.model.intervals import TimeRange
from strandline.spec import find_spec, load_spec, spec_files
from strandline.spec.values import parse_bytes, parse_instant

app = typer.Typer(
    help="Exact event-time backfills: Flink's watermark and lateness semantics, in batch.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_PLACES: dict[str, str | None] = {"pipelines": None, "lake": None}
"""What was given before the command's name."""

Pipeline = Annotated[str, typer.Argument(help="The pipeline's name.", metavar="PIPELINE")]
Pipelines = Annotated[
    str | None, typer.Option(help="Folder of pipeline files. [STRANDLINE_PIPELINES, pipelines/]")
]
LakeAt = Annotated[
    str | None,
    typer.Option("--lake", help="Lake root: a folder or a URI. [STRANDLINE_LAKE, lake/]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document for machines.")]
Start = Annotated[str, typer.Option(help="First instant of the range, ISO-8601, UTC.")]
End = Annotated[str, typer.Option(help="End of the range; not in it.")]
AsOf = Annotated[
    str | None, typer.Option(help="The horizon: records and ticks before it are known.")
]
Close = Annotated[
    bool, typer.Option("--close", help="The input of the range has ended at the horizon.")
]
Reopen = Annotated[
    bool, typer.Option("--reopen", help="Rebuild what --close had closed as not closed.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]
Reason = Annotated[str | None, typer.Option(help="Why; kept in the ledger.")]
RequestedBy = Annotated[str | None, typer.Option(help="Who asks; kept in the ledger.")]
RunKey = Annotated[
    str | None, typer.Option(help="Names the caller's run, so that its retries belong together.")
]
AcceptLoss = Annotated[
    str | None,
    typer.Option(
        metavar="REASON",
        help="Go by what is left where rows have gone from the landing table; why.",
    ),
]
AllowRemovals = Annotated[
    bool,
    typer.Option("--allow-removals", help="Any share of the range's published windows may go."),
]
MaxBytes = Annotated[
    str | None, typer.Option(help="Refuse to read more of the landing table, such as 20GB.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Compute also what would only repeat a published run.")
]
RepeatOnly = Annotated[
    bool,
    typer.Option(
        "--repeat-only",
        help="Without Spark: end with 0 if the run only repeats a published one, else with 5.",
    ),
]
Master = Annotated[str | None, typer.Option(help="Spark master. [what spark-submit says, local]")]


class _Repetition(Enum):
    """What becomes of a run that would only repeat a published one."""

    ASKED = "it says so, without Spark; else the run is computed"
    ONLY = "it says so, without Spark; else nothing is done"
    COMPUTED = "it is computed all the same"

    @classmethod
    def of(cls, *, force: bool, repeat_only: bool) -> _Repetition:
        """By the options of a command."""
        if force and repeat_only:
            raise InputError("--repeat-only", "contradicts --force", "give one of them")
        if force:
            return cls.COMPUTED
        return cls.ONLY if repeat_only else cls.ASKED


_NO_REPETITION = 5
"""The exit code of `--repeat-only` where there is something to compute."""


@app.callback()
def places(pipelines: Pipelines = None, lake: LakeAt = None) -> None:
    """Exact event-time backfills: Flink's watermark and lateness semantics, in batch."""
    _PLACES.update(pipelines=pipelines, lake=lake)


@app.command()
def backfill(
    pipeline: Pipeline,
    start: Start,
    end: End,
    as_of: AsOf = None,
    close: Close = False,
    reopen: Reopen = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    reason: Reason = None,
    requested_by: RequestedBy = None,
    run_key: RunKey = None,
    accept_loss: AcceptLoss = None,
    allow_removals: AllowRemovals = False,
    max_bytes: MaxBytes = None,
    force: Force = False,
    repeat_only: RepeatOnly = False,
    master: Master = None,
    pipelines: Pipelines = None,
    lake: LakeAt = None,
) -> None:
    """Rebuild the windows that start in a range, judge them, publish what differs."""
    request: dict[str, Any] = {
        "kind": "backfill",
        "range": _range(start, end),
        "as_of_ms": None if as_of is None else _instant("--as-of", as_of),
        "close": close,
        "reopen": reopen,
        "dry_run": dry_run,
        "reason": reason,
        "requested_by": requested_by,
        "run_key": run_key,
        **_limits(accept_loss, allow_removals=allow_removals, max_bytes=max_bytes),
    }
    _run(
        pipeline,
        request,
        as_json=as_json,
        repetition=_Repetition.of(force=force, repeat_only=repeat_only),
        master=master,
        pipelines=pipelines,
        lake=lake,
    )


@app.command()
def plan(
    pipeline: Pipeline,
    start: Annotated[str | None, typer.Option(help="First instant of the range.")] = None,
    end: Annotated[str | None, typer.Option(help="End of the range; not in it.")] = None,
    to: Annotated[str | None, typer.Option(help="Of a scheduled run up to this instant.")] = None,
    as_of: AsOf = None,
    close: Close = False,
    reopen: Reopen = False,
    accept_loss: AcceptLoss = None,
    allow_removals: AllowRemovals = False,
    max_bytes: MaxBytes = None,
    as_json: AsJson = False,
    master: Master = None,
    pipelines: Pipelines = None,
    lake: LakeAt = None,
) -> None:
    """What a backfill (--start, --end) or a scheduled run (--to) would do; writes nothing."""
    request: dict[str, Any] = {
        "dry_run": True,
        **_limits(accept_loss, allow_removals=allow_removals, max_bytes=max_bytes),
    }
    if to is not None:
        if start or end or as_of or close or reopen:
            raise InputError("--to", "says it all for a scheduled run", "give nothing beside it")
        request |= {"kind": "advance", "to_ms": _instant("--to", to)}
    elif start is None or end is None:
        raise InputError("plan", "no range", "give --start and --end, or --to for a scheduled run")
    else:
        request |= {
            "kind": "backfill",
            "range": _range(start, end),
            "as_of_ms": None if as_of is None else _instant("--as-of", as_of),
            "close": close,
            "reopen": reopen,
        }
    _run(pipeline, request, as_json=as_json, master=master, pipelines=pipelines, lake=lake)


@app.command()
def advance(
    pipeline: Pipeline,
    to: Annotated[str, typer.Option(help="Up to the last UTC midnight not after this instant.")],
    dry_run: DryRun = False,
    as_json: AsJson = False,
    reason: Reason = None,
    requested_by: RequestedBy = None,
    run_key: RunKey = None,
    accept_loss: AcceptLoss = None,
    allow_removals: AllowRemovals = False,
    max_bytes: MaxBytes = None,
    force: Force = False,
    repeat_only: RepeatOnly = False,
    master: Master = None,
    pipelines: Pipelines = None,
    lake: LakeAt = None,
) -> None:
    """Do what a scheduled run does: all that was not final a day, or a skipped week, ago."""
    request: dict[str, Any] = {
        "kind": "advance",
        "to_ms": _instant("--to", to),
        "dry_run": dry_run,
        "reason": reason,
        "requested_by": requested_by,
        "run_key": run_key,
        **_limits(accept_loss, allow_removals=allow_removals, max_bytes=max_bytes),
    }
    _run(
        pipeline,
        request,
        as_json=as_json,
        repetition=_Repetition.of(force=force, repeat_only=repeat_only),
        master=master,
        pipelines=pipelines,
        lake=lake,
    )


@app.command()
def status(
    pipeline: Pipeline,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
    pipelines: Pipelines = None,
    lake: LakeAt = None,
) -> None:
    """How far the pipeline is, what is open, what is late; quick, without Spark."""
    from strandline.pipeline.views.status import status_of  # noqa: PLC0415

    spec = find_spec(_folder(pipelines), pipeline)
    found = status_of(spec, _lake(lake), **asked_days(since, until))
    show.document(found, as_json=as_json, human=show.status)


@app.command()
def validate(
    targets: Annotated[
        list[str] | None, typer.Argument(help="Pipelines or files; default: all.")
    ] = None,
    as_json: AsJson = False,
    pipelines: Pipelines = None,
) -> None:
    """Check pipeline files, all mistakes of each with their way out; without Spark."""
    folder = _folder(pipelines)
    chosen = targets or [str(path) for path in spec_files(folder)]
    if not chosen:
        raise InputError("--pipelines", f"{folder.name}/ has no pipeline files", "name a folder")
    results = []
    for target in chosen:
        path = Path(target)
        try:
            is_file = path.suffix in {".yaml", ".yml"}
            spec = load_spec(path) if is_file else find_spec(folder, target)
            if spec.quality.expectations:
                from strandline.quality.audit.run import validate_expectations  # noqa: PLC0415

                validate_expectations(spec)
        except InputError as error:
            results.append({"target": target, "valid": False, "problem": str(error)})
        except Exception as error:  # noqa: BLE001 - one file's trouble is not the others'
            problem = f"{target}: {problem_of(error)}"
            results.append({"target": target, "valid": False, "problem": problem})
        else:
            results.append({"target": target, "valid": True, "pipeline": spec.pipeline})
    show.document(results, as_json=as_json, human=show.validated)
    if not all(result["valid"] for result in results):
        raise typer.Exit(2)


@app.command()
def report(
    pipeline: Pipeline,
    output: Annotated[Path | None, typer.Option(help="Folder to write into.")] = None,
    since: Since = None,
    until: Until = None,
    docs: Annotated[bool, typer.Option(help="Write the Data Docs beside the report.")] = True,
    as_json: AsJson = False,
    pipelines: Pipelines = None,
    lake: LakeAt = None,
) -> None:
    """Write the data-quality report (one HTML page) and the Data Docs; without Spark."""
    from strandline.pipeline.views.report import write_report  # noqa: PLC0415

    spec = find_spec(_folder(pipelines), pipeline)
    days = asked_days(since, until)
    written = write_report(spec, _lake(lake), output, **days, data_docs=docs)
    show.document(written, as_json=as_json, human=show.written)


class _ListedByDefault(TyperGroup):
    """`runs PIPELINE` is `runs list PIPELINE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `list` where no command stands."""
        if args and args[0] not in {*self.commands, "--help"}:
            args = ["list", *args]
        return list(super().parse_args(ctx, args))


runs_app = typer.Typer(
    cls=_ListedByDefault, help="The ledger: what ran, what it found, why it was rejected."
)
app.add_typer(runs_app, name="runs")


@runs_app.command("list")
def runs_list(
    pipeline: Pipeline,
    as_json: AsJson = False,
    pipelines: Pipelines = None,
    lake: LakeAt = None,
) -> None:
    """The runs of a pipeline, newest first."""
    from strandline.pipeline.views.status import runs_of  # noqa: PLC0415

    spec = find_spec(_folder(pipelines), pipeline)
    show.document(runs_of(spec, _lake(lake)), as_json=as_json, human=show.runs)


@runs_app.command("show")
def runs_show(
    pipeline: Pipeline,
    run_id: Annotated[str, typer.Argument(help="As `strandline runs list` names it.")],
    as_json: AsJson = False,
    pipelines: Pipelines = None,
    lake: LakeAt = None,
) -> None:
    """One run: its steps, books, audit and diff."""
    from strandline.pipeline.views.status import run_of  # noqa: PLC0415

    spec = find_spec(_folder(pipelines), pipeline)
    show.document(run_of(spec, _lake(lake), run_id), as_json=as_json, human=show.one_run)


@runs_app.command("drop")
def runs_drop(
    pipeline: Pipeline,
    run_id: Annotated[
        str, typer.Argument(help="As `strandline runs list` names it.", metavar="RUN")
    ],
    reason: Annotated[str, typer.Option(help="Why; kept in the ledger.")],
    requested_by: RequestedBy = None,
    as_json: AsJson = False,
    pipelines: Pipelines = None,
    lake: LakeAt = None,
) -> None:
    """Abandon a run that has not published; what its publish has begun to write is taken back."""
    from strandline.pipeline.drop import drop_run  # noqa: PLC0415

    spec = find_spec(_folder(pipelines), pipeline)
    found = drop_run(spec, _lake(lake), run_id, reason=reason, requested_by=requested_by)
    show.document(found, as_json=as_json, human=show.dropped)


@app.command()
def conformance(
    files: Annotated[
        list[Path], typer.Argument(help="Scenario files or folders (.json, .json.gz).")
    ],
    engine: Annotated[str, typer.Option(help="reference or spark.")] = "spark",
    as_json: AsJson = False,
) -> None:
    """Hold an engine against answers of Flink itself, scenario by scenario."""
    if engine not in {"reference", "spark"}:
        raise InputError("--engine", f"{engine!r} is no engine", "give reference or spark")
    result = _conformance(files, on_spark=engine == "spark", as_json=as_json)
    show.document(show.conformance_figures(result), as_json=as_json, human=show.conformance)
    if not result.passed:
        raise typer.Exit(1)


def _conformance(files: list[Path], *, on_spark: bool, as_json: bool) -> Any:
    from strandline.conformance import answer_by_reference, run_conformance  # noqa: PLC0415

    if not on_spark:
        return run_conformance(files, answer_by_reference)
    from strandline.conformance.spark_runner import SparkEngine  # noqa: PLC0415
    from strandline.lake.session import SMALL_INPUT, spark_session  # noqa: PLC0415

    with show.progress(quiet=as_json) as step:
        step("start Spark")
        spark = spark_session("strandline conformance", SMALL_INPUT)
        try:
            return run_conformance(
                files,
                SparkEngine(spark),
                at_once=4,
                on_outcome=lambda outcome: step(f"{outcome.scenario}: {outcome.verdict}"),
            )
        finally:
            spark.stop()


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code; an error is one message, never a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        app(args=arguments, prog_name="strandline")
    except StrandlineError as error:
        _fail(error, arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, a user reads one line
        unexpected = UnexpectedError.of(" ".join(["strandline", *arguments[:2]]), error)
        unexpected.__cause__ = error
        _fail(unexpected, arguments)


def _fail(error: StrandlineError, arguments: Sequence[str]) -> NoReturn:
    show.failure(error, as_json="--json" in arguments)
    if os.environ.get("STRANDLINE_TRACE"):
        traceback.print_exception(error.__cause__ or error)
    sys.exit(error.exit_code)


def _run(
    pipeline: str,
    asked: dict[str, Any],
    *,
    as_json: bool,
    master: str | None,
    pipelines: str | None,
    lake: str | None,
    repetition: _Repetition = _Repetition.ASKED,
) -> None:
    spec = find_spec(_folder(pipelines), pipeline)
    root = _lake(lake)
    table = spec.source.table
    if not root.is_catalog_name(table):
        root.landing_version(table, f"{spec.pipeline}: source.table")
    from strandline.pipeline.repeated import repeat  # noqa: PLC0415
    from strandline.pipeline.request import Request  # noqa: PLC0415

    request = Request(**asked, now_ms=int(time.time() * 1000))
    repeated = None if repetition is _Repetition.COMPUTED else repeat(spec, root, request)
    if repeated is not None:
        show.document(repeated.to_json(), as_json=as_json, human=show.outcome)
        return
    if repetition is _Repetition.ONLY:
        raise typer.Exit(_NO_REPETITION)
    light = root.makes_a_light_run(table)
    with show.progress(quiet=as_json) as step:
        step("start Spark")
        # Great Expectations takes seconds to import: let it, while the JVM starts
        Thread(target=import_module, args=("strandline.quality.audit.run",), daemon=True).start()
        from strandline.lake.cluster import require_shared  # noqa: PLC0415
        from strandline.lake.session import spark_session  # noqa: PLC0415
        from strandline.pipeline.run import run  # noqa: PLC0415

        name = f"strandline {spec.pipeline}"
        spark = spark_session(name, spec.spark, master=master, light=light)
        try:
            require_shared(spark, root)
            outcome = run(spec, root, request, spark, step)
        except KeyboardInterrupt:
            raise InterruptedByUserError(
                f"{spec.pipeline}", "interrupted", "running it again is safe"
            ) from None
        finally:
            with suppress(Exception):  # a JVM that is gone cannot be stopped
                spark.stop()
    show.document(outcome.to_json(), as_json=as_json, human=show.outcome)
    if outcome.status == "would be rejected":
        raise typer.Exit(3)


def _limits(
    accept_loss: str | None, *, allow_removals: bool, max_bytes: str | None
) -> dict[str, Any]:
    """What a run may read and take away, as a request says it."""
    if accept_loss is not None and not accept_loss.strip():
        raise InputError("--accept-loss", "no reason", "say why the rows have gone")
    try:
        most = None if max_bytes is None else parse_bytes(max_bytes)
    except ValueError as error:
        raise InputError("--max-bytes", f"{max_bytes!r} is {error}") from None
    return {"accept_loss": accept_loss, "allow_removals": allow_removals, "max_bytes": most}


def _folder(given: str | None) -> Path:
    return Path(
        given or _PLACES["pipelines"] or os.environ.get("STRANDLINE_PIPELINES") or "pipelines"
    )


def _lake(given: str | None) -> Any:
    from strandline.lake.store import Lake  # noqa: PLC0415

    return Lake.at(given or _PLACES["lake"] or os.environ.get("STRANDLINE_LAKE") or "lake")


def _range(start: str, end: str) -> TimeRange:
    within = TimeRange(_instant("--start", start), _instant("--end", end))
    if within.start_ms >= within.end_ms:
        raise InputError("--start", f"{start} is not before --end {end}", "give a range forwards")
    return within


def _instant(option: str, text: str) -> int:
    try:
        return parse_instant(text)
    except (ValueError, OverflowError) as error:
        raise InputError(option, f"{text!r} is {error}") from None
