"""The commands.

Exit codes: 0 done, 2 wrong input, 3 audit failed, or `status --deep` has a critical finding, 4
retryable, 5 `--repeat-only` and not a repetition, 130 interrupted, 1 anything else.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from typer._click.exceptions import UsageError

from strandline.cli import native_messages, show
from strandline.cli.acknowledge import acknowledge
from strandline.cli.advise import advise
from strandline.cli.changes import changes
from strandline.cli.conformance import conformance
from strandline.cli.erase import erase
from strandline.cli.groups import PLACES, EngineOptions, Places, command_typed, with_groups
from strandline.cli.incomplete import incomplete
from strandline.cli.init import init
from strandline.cli.json_document import document, write_failure
from strandline.cli.maintain import maintain
from strandline.cli.options import (
    AsJson,
    LakeAt,
    Pipeline,
    Pipelines,
    Since,
    Until,
    asked_days,
    given_path,
    instant_at,
    range_of,
)
from strandline.cli.package import jars, package
from strandline.cli.plan import plan
from strandline.cli.read import read
from strandline.cli.run_options import (
    Cutoff,
    Effect,
    Limits,
    Provenance,
    Repetition,
    RulesOfRun,
)
from strandline.cli.running import run_pipeline
from strandline.cli.runs import runs_app
from strandline.cli.status import status
from strandline.cli.test import test
from strandline.cli.validate import schema, validate
from strandline.cli.views import views
from strandline.errors import (
    InputError,
    InterruptedByUserError,
    StrandlineError,
    UnexpectedError,
    not_installed,
    storage_error,
    was_interrupted,
)

_TRACE = "STRANDLINE_TRACE"
"""The environment variable that shows traces, and every message of libraries."""
_NEW_OBJECTS = 100_000
"""The number of new objects after which the garbage collector searches for cycles. The default of
700 would be wasteful: most objects of a command belong to modules, which are never freed."""

app = typer.Typer(
    help="Rebuild event-time windows over history, with exactly Flink's watermarks and lateness.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(runs_app, name="runs")
_COMMANDS = (
    init,
    validate,
    schema,
    test,
    advise,
    plan,
    status,
    changes,
    incomplete,
    read,
    acknowledge,
    maintain,
    erase,
    jars,
    package,
    conformance,
)
for command in _COMMANDS:
    app.command()(with_groups(command))
app.command(hidden=True)(with_groups(views))
app.command(hidden=True)(document)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"strandline {version('strandline')}")
        raise typer.Exit


_Version = Annotated[
    bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version.")
]


@app.callback()
def places(pipelines: Pipelines = None, lake: LakeAt = None, _version: _Version = False) -> None:
    """Rebuild event-time windows over history, with exactly Flink's watermarks and lateness."""
    PLACES.update(pipelines=pipelines, lake=lake)


@app.command()
@with_groups
def backfill(
    pipeline: Pipeline,
    start: Annotated[str, typer.Option(help="First instant of the range, ISO-8601, UTC.")],
    end: Annotated[str, typer.Option(help="End of the range, exclusive.")],
    cutoff: Cutoff,
    rules: RulesOfRun,
    effect: Effect,
    provenance: Provenance,
    limits: Limits,
    repetition: Repetition,
    *,
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare", help="Compute, and keep the result for `strandline runs publish`."
        ),
    ] = False,
    as_json: AsJson = False,
    on: EngineOptions,
    at: Places,
) -> None:
    """Recompute the windows of a range; publish the difference."""
    request: dict[str, Any] = {
        "kind": "backfill",
        "range": range_of(start, end),
        "overrides": rules.overrides(),
        "prepare": prepare,
        **cutoff.request(),
        **effect.request(),
        **provenance.request(),
        **limits.request(),
    }
    run_pipeline(pipeline, request, at, on, repetition, as_json=as_json)


@app.command()
@with_groups
def advance(
    pipeline: Pipeline,
    to: Annotated[
        str, typer.Option(help="Process arrivals before the last UTC midnight up to this instant.")
    ],
    effect: Effect,
    provenance: Provenance,
    limits: Limits,
    repetition: Repetition,
    *,
    as_json: AsJson = False,
    on: EngineOptions,
    at: Places,
) -> None:
    """Bring the pipeline up to date, as a scheduled run does.

    Recompute every window that could still change, and publish the difference. So it catches up
    on days that were skipped or failed, and on days that have changed since.
    """
    request: dict[str, Any] = {
        "kind": "advance",
        "to_ms": instant_at("--to", to),
        **effect.request(),
        **provenance.request(),
        **limits.request(),
    }
    run_pipeline(pipeline, request, at, on, repetition, as_json=as_json)


@app.command()
@with_groups
def report(
    pipeline: Pipeline,
    *,
    output: Annotated[
        str | None, typer.Option(help="Folder to write into. [the pipeline's, in the lake]")
    ] = None,
    since: Since = None,
    until: Until = None,
    docs: Annotated[bool, typer.Option(help="Write the Data Docs, too.")] = True,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Write the data-quality report, one HTML page.

    Great Expectations' Data Docs are written beside it. No engine is started.
    """
    from strandline.pipeline.views.report import write_report  # noqa: PLC0415

    spec, days = at.spec(pipeline), asked_days(since, until)
    now_ms = int(time.time() * 1000)
    folder = given_path("--output", output)
    if folder is not None and folder.suffix in {".html", ".htm"} and not folder.is_dir():
        raise InputError(
            "--output", f"{folder} names a file, not a folder", "name the folder for report.html"
        )
    written = write_report(spec, at.root, folder, **days, data_docs=docs, now_ms=now_ms)
    show.document(written, as_json=as_json, human=show.written)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code; an error is one message, never a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.freeze)  # else Python, as it ends, searches a million objects for cycles
    try:
        # Typer alone would print a wrong option as a text, where --json wants a document
        with nullcontext() if os.environ.get(_TRACE) else native_messages.filtered():
            code = app(args=arguments, prog_name="strandline", standalone_mode=False) or 0
        if code == InterruptedByUserError.exit_code:  # of a Ctrl-C, which is no error to Typer
            raise InterruptedByUserError(command_typed(arguments))
        sys.exit(code)
    except UsageError as error:
        error.show()
        if "--json" in arguments:
            command = "strandline" if error.ctx is None else error.ctx.command_path
            write_failure(InputError(command, error.format_message()))
        sys.exit(error.exit_code)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of Rust, too: a user reads one line
        _fail(_as_strandline_error(error, command_typed(arguments)), arguments)


def _as_strandline_error(error: BaseException, place: str) -> StrandlineError:
    """A StrandlineError for any exception; an interruption wins over errors of its clean-up."""
    if isinstance(error, InterruptedByUserError):
        return error
    if isinstance(error, typer.Abort) or was_interrupted(error):
        return InterruptedByUserError(place)  # Typer aborts where the input ends at a question
    if isinstance(error, StrandlineError):
        return error
    failed = (
        not_installed(place, error)
        or storage_error(place, error)
        or UnexpectedError.of(place, error)
    )
    failed.__cause__ = error
    return failed


def _fail(error: StrandlineError, arguments: Sequence[str]) -> NoReturn:
    show.failure(error, as_json="--json" in arguments)
    if os.environ.get(_TRACE):
        traceback.print_exception(error.__cause__ or error)
    if isinstance(error, InterruptedByUserError):
        _leave(error.exit_code)
    sys.exit(error.exit_code)


def _leave(code: int) -> NoReturn:
    """End the process at once.

    A client of Spark Connect that was interrupted as it connected would, as Python ends, ask its
    server for ten minutes to clean up.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)
