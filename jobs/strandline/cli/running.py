"""A run of the command line: its engine session, its progress and its interruption."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import typer

from strandline.cli import show
from strandline.cli.groups import EngineOptions, Places
from strandline.cli.progress import progress
from strandline.cli.run_options import Repetition
from strandline.errors import InterruptedByUserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from strandline.lake.landing.log import LandingLog
    from strandline.lake.sessions.choice import EngineChoice
    from strandline.lake.store.lake import Lake
    from strandline.pipeline.request.opened import OpenedLog
    from strandline.pipeline.request.outcome import Outcome
    from strandline.pipeline.request.request import Request
    from strandline.spec import PipelineSpec


SHOWN_AS = {"spark": "Spark", "connect": "Spark Connect", "sail": "Sail"}
"""The names of the engines in messages."""
_NO_REPETITION = 5
"""The exit code of `--repeat-only` if the run would not be a repetition."""


def run_pipeline(
    pipeline: str,
    asked: dict[str, Any],
    at: Places,
    on: EngineOptions,
    repetition: Repetition,
    *,
    as_json: bool,
) -> None:
    """Run a pipeline and show the result; a run that could change nothing starts no engine.

    Args:
        pipeline: the pipeline's name.
        asked: the fields of a `Request`, without `now_ms`.
        at: the places of pipeline files and tables.
        on: the engine.
        repetition: whether a run that would only repeat a published run is computed.
        as_json: whether to print a JSON document.

    Raises:
        InputError: the range lies in the future, the pipeline or its landing table does not exist,
            the pipeline has published with another window or key, or an expression is wrong. All
            of this is found before an engine is started.
    """
    repetition.require_one()
    spec = at.spec(pipeline, asked.get("overrides"))
    choice = on.choice(spec)
    from strandline.pipeline.request.layout import require_same_layout  # noqa: PLC0415
    from strandline.pipeline.request.opened import OpenedLog  # noqa: PLC0415
    from strandline.pipeline.request.request import Request  # noqa: PLC0415

    request = Request(**asked, now_ms=int(time.time() * 1000))
    opened = OpenedLog.newest(at.root, spec)
    require_same_layout(spec, opened.ledger.state(), recreate=request.recreate)
    outcome = None if repetition.force else _known_outcome(spec, opened, request)
    if outcome is None:
        if repetition.repeat_only:
            show.note("there is something to compute; without --repeat-only this run does it")
            raise typer.Exit(_NO_REPETITION)
        outcome = _computed(spec, opened, request, choice, as_json=as_json)
    show.document(outcome.to_json(), as_json=as_json, human=show.outcome)
    if outcome.status == "would be rejected":
        raise typer.Exit(3)


def _computed(
    spec: PipelineSpec,
    opened: OpenedLog,
    request: Request,
    choice: EngineChoice,
    *,
    as_json: bool,
) -> Outcome:
    """The outcome of a run in an engine's session of its own."""
    from strandline.lake.landing.known_columns import require_expressions  # noqa: PLC0415
    from strandline.lake.landing.small_runs import is_small  # noqa: PLC0415
    from strandline.pipeline.plan.earlier_durations import seconds_by_part  # noqa: PLC0415

    lake, state = opened.ledger.store.lake, opened.ledger.state()
    require_expressions(spec, opened.log)
    _import_ahead(choice)
    with application(
        spec,
        lake,
        choice,
        as_json=as_json,
        log=opened.log,
        short=is_small(spec, state, opened.log, request.range),
        took_before=seconds_by_part(state, request.kind),
    ) as (spark, step):
        from strandline.pipeline.run import run  # noqa: PLC0415

        return run(spec, lake, request, spark, step, opened)


def _known_outcome(spec: PipelineSpec, opened: OpenedLog, request: Request) -> Outcome | None:
    """The result of a run with nothing new to process, or of the run it would repeat; else None."""
    from strandline.pipeline.request.answered import already_processed, repeat  # noqa: PLC0415

    return already_processed(spec, opened, request) or repeat(spec, opened, request)


def _import_ahead(choice: EngineChoice) -> None:
    """Import slow modules in a thread while the engine starts.

    PySpark (for Spark Connect and Sail: its Connect client) is imported before, in this thread: if
    two threads import one package at the same time, one of them may get it half initialised.
    """
    import_module("pyspark.sql" if choice.name == "spark" else "pyspark.sql.connect.session")
    Thread(target=_import_quietly, args=("strandline.quality.audit.run",), daemon=True).start()


def _import_quietly(module: str) -> None:
    """Import a module; an error is left to whoever imports it where it is needed."""
    with suppress(Exception):
        import_module(module)


@contextmanager
def application(
    spec: PipelineSpec,
    lake: Lake,
    choice: EngineChoice,
    *,
    as_json: bool,
    log: LandingLog | None,
    short: bool,
    took_before: Mapping[str, float] | None = None,
) -> Iterator[tuple[SparkSession, Callable[[str], None]]]:
    """The engine's session of a command, and the callback that shows each step as it begins.

    Args:
        spec: the pipeline.
        lake: the lake of its tables.
        choice: the engine.
        as_json: whether the command prints a JSON document.
        log: the landing table's log; None if only a catalog knows the table's location.
        short: whether the run is too short for a JVM to warm up.
        took_before: the seconds of earlier runs by part; None if they are unknown.

    Raises:
        InputError: the engine cannot run the pipeline; raised before the engine starts.
        InterruptedByUserError: the user has interrupted the command.
    """
    from strandline.lake.sessions.shared import require_shared  # noqa: PLC0415
    from strandline.lake.sessions.start import start  # noqa: PLC0415
    from strandline.pipeline.request.unsupported import require_supported, stores_of  # noqa: PLC0415

    require_supported(choice, spec, log)
    with progress(quiet=as_json, took_before=took_before) as step:
        step(f"start {SHOWN_AS[choice.name]}")
        name = f"strandline {spec.pipeline}"
        # SIGTERM is answered as Ctrl-C is
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        stores = stores_of(lake, log)
        session = None
        try:
            session = start(choice, name, spec.spark, short=short, stores=stores)
            require_shared(session, lake, probe=uuid4().hex)
            yield session.spark, step
        # `from error` keeps the traceback's objects: a gRPC channel that is freed while it connects
        # would wait for ever
        except KeyboardInterrupt as error:
            raise InterruptedByUserError(spec.pipeline) from error
        finally:
            if session is not None:
                session.stop()
            signal.signal(signal.SIGTERM, before)
