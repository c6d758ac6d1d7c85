"""A run from the command line: its session, its progress, its interruption."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import typer

from strandline.cli import show
from strandline.cli.options import EngineOptions, lake_at, spec_of
from strandline.cli.progress import progress
from strandline.errors import InputError, InterruptedByUserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from strandline.lake.landing_log import LandingLog
    from strandline.lake.sessions.choice import EngineChoice
    from strandline.lake.store import Lake
    from strandline.spec import PipelineSpec


class Repetition(Enum):
    """What becomes of a run that would only repeat a published one, or goes no further."""

    ASKED = "it says so, without Spark; else the run is computed"
    ONLY = "it says so, without Spark; else nothing is done"
    COMPUTED = "it is computed all the same"

    @classmethod
    def of(cls, *, force: bool, repeat_only: bool) -> Repetition:
        """By the options of a command.

        Raises:
            InputError: they contradict each other.
        """
        if force and repeat_only:
            raise InputError("--repeat-only", "contradicts --force", "give one of them")
        if force:
            return cls.COMPUTED
        return cls.ONLY if repeat_only else cls.ASKED


SHOWN_AS = {"spark": "Spark", "connect": "Spark Connect", "sail": "Sail"}
"""The engines by the names that they go by."""
_NO_REPETITION = 5
"""The exit code of `--repeat-only` where there is something to compute."""


def run_pipeline(
    pipeline: str,
    asked: dict[str, Any],
    *,
    as_json: bool,
    on: EngineOptions,
    pipelines: str | None,
    lake: str | None,
    repetition: Repetition = Repetition.ASKED,
) -> None:
    """Run a pipeline and show what came of it; one that could change nothing starts no Spark.

    Args:
        pipeline: its name.
        asked: the request, but for the time of the clock.
        as_json: whether machines read it.
        repetition: what becomes of a run that would only repeat a published one.
        on: the options that say which engine.
        pipelines: the folder of pipeline files, where it is given.
        lake: the lake, where it is given.

    Raises:
        InputError: what is asked for lies ahead of the clock, there is no such pipeline, or no
            landing table, or the pipeline has published by another window or key, or says a wrong
            expression; all of these before Spark is started.
    """
    spec = spec_of(pipeline, pipelines, asked.get("overrides"))
    choice = on.choice(spec)
    root = lake_at(lake)
    from strandline.lake.ledger import Ledger  # noqa: PLC0415
    from strandline.lake.small_runs import is_small  # noqa: PLC0415
    from strandline.pipeline.already_processed import already_processed  # noqa: PLC0415
    from strandline.pipeline.expressions import require_expressions  # noqa: PLC0415
    from strandline.pipeline.layout import require_same_layout  # noqa: PLC0415
    from strandline.pipeline.opened import OpenedLog  # noqa: PLC0415
    from strandline.pipeline.repeated import repeat  # noqa: PLC0415
    from strandline.pipeline.request import Request  # noqa: PLC0415
    from strandline.pipeline.took import parts_before  # noqa: PLC0415

    request = Request(**asked, now_ms=int(time.time() * 1000))
    opened = OpenedLog.newest(root, spec)
    log = opened.log
    entries = Ledger(root.pipeline(spec.pipeline)).entries()
    require_same_layout(spec, entries, recreate=request.recreate)
    answered = (
        None
        if repetition is Repetition.COMPUTED
        else already_processed(spec, root, request, log) or repeat(spec, root, request, log)
    )
    if answered is not None:
        show.document(answered.to_json(), as_json=as_json, human=show.outcome)
        return
    if repetition is Repetition.ONLY:
        raise typer.Exit(_NO_REPETITION)
    require_expressions(spec, log)
    short = log is not None and is_small(spec, root, log, request.range)
    # two threads that import PySpark at once meet in its circles of imports: first it, alone
    import_module("pyspark.sql")
    # Great Expectations takes seconds to import: let it, while the engine starts
    Thread(target=import_module, args=("strandline.quality.audit.run",), daemon=True).start()
    before = parts_before(entries, request.kind)
    with application(
        spec, root, choice, as_json=as_json, log=log, short=short, took_before=before
    ) as (spark, step):
        from strandline.pipeline.run import run  # noqa: PLC0415

        outcome = run(spec, root, request, spark, step, opened)
    show.document(outcome.to_json(), as_json=as_json, human=show.outcome)
    if outcome.status == "would be rejected":
        raise typer.Exit(3)


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
    """The Spark application of a command, and what is told each step as it begins.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        choice: the engine.
        as_json: whether machines read what the command says.
        log: of the landing table; None: only a catalog knows where it lies.
        short: whether it is over before a JVM would have warmed up.
        took_before: the seconds that parts of earlier runs took; None: nobody knows.

    Raises:
        InputError: the engine cannot do what the pipeline asks for; before it is started.
        InterruptedByUserError: somebody has interrupted it.
    """
    from strandline.lake.sessions.limits import needs_network, require_able  # noqa: PLC0415
    from strandline.lake.sessions.shared import require_shared  # noqa: PLC0415
    from strandline.lake.sessions.start import start  # noqa: PLC0415

    require_able(choice, spec, log)
    with progress(quiet=as_json, took_before=took_before) as step:
        step(f"start {SHOWN_AS[choice.name]}")
        name = f"strandline {spec.pipeline}"
        # who asks the process to end is told as who types Ctrl-C
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        network = needs_network(lake, log)
        session = start(choice, name, spec.spark, short=short, needs_network=network)
        try:
            require_shared(session, lake, probe=uuid4().hex)
            yield session.spark, step
        except KeyboardInterrupt:
            raise InterruptedByUserError(
                f"{spec.pipeline}", "interrupted", "running it again is safe"
            ) from None
        finally:
            session.stop()
            signal.signal(signal.SIGTERM, before)
