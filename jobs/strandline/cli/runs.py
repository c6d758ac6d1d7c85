"""runs: publish, revert, cancel, drop or show a run; list all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from strandline.cli import show
from strandline.cli.console import escape
from strandline.cli.groups import EngineOptions, Places, with_groups
from strandline.cli.options import (
    AsJson,
    DryRun,
    Pipeline,
    Reason,
    RequestedBy,
    require_reason,
)
from strandline.cli.running import application
from strandline.errors import InputError

Run = Annotated[
    str, typer.Argument(help="Id of the run, see `strandline runs list`.", metavar="RUN")
]


class _ListedByDefault(TyperGroup):
    """`runs PIPELINE` is `runs list PIPELINE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `list` if no command is given; the first of two words is one, maybe misspelt."""
        given = {*self.commands, *ctx.help_option_names}
        are_words = len(args) > 1 and not any(word.startswith("-") for word in args[:2])
        if args and args[0] not in given and not are_words:
            args = ["list", *args]
        return list(super().parse_args(ctx, args))


runs_app = typer.Typer(
    cls=_ListedByDefault, help="List runs; show, publish, cancel, drop or revert one."
)


@runs_app.command("publish")
@with_groups
def runs_publish(
    pipeline: Pipeline,
    run_id: Run,
    *,
    accept: Annotated[
        str | None,
        typer.Option(
            metavar="REASON", help="Publish although the audit rejected it, for this reason."
        ),
    ] = None,
    requested_by: RequestedBy = None,
    as_json: AsJson = False,
    on: EngineOptions,
    at: Places,
) -> None:
    """Publish what a prepared (or rejected) run computed."""
    if accept is not None and not accept.strip():
        raise InputError("--accept", "empty", "give the reason for publishing it")
    spec, root = at.spec(pipeline), at.root
    from strandline.pipeline.publish.publish_prepared import (  # noqa: PLC0415
        overrides_of,
        publish_prepared,
        require_publishable,
    )
    from strandline.pipeline.request.opened import OpenedLog  # noqa: PLC0415
    from strandline.pipeline.request.outcome import Outcome  # noqa: PLC0415

    opened = OpenedLog.newest(root, spec)
    state = opened.ledger.state()
    spec = at.spec(pipeline, overrides_of(state, run_id))
    run = require_publishable(spec, opened.ledger.store, state, run_id, accept, opened.log)
    if run.step == "published":
        outcome = Outcome.of(spec.pipeline, run)
    else:
        with application(
            spec, root, on.choice(spec), as_json=as_json, log=opened.log, short=True
        ) as (spark, step):
            outcome = publish_prepared(
                spec,
                root,
                run_id,
                spark,
                accept=accept,
                requested_by=requested_by,
                progress=step,
                opened=opened,
            )
    show.document(outcome.to_json(), as_json=as_json, human=show.outcome)


@runs_app.command("revert")
@with_groups
def runs_revert(
    pipeline: Pipeline,
    run_id: Run,
    reason: Annotated[str, typer.Option(help="Reason; kept in the run history.")],
    *,
    dry_run: DryRun = False,
    requested_by: RequestedBy = None,
    as_json: AsJson = False,
    on: EngineOptions,
    at: Places,
) -> None:
    """Undo a published run: publish the rows from before it."""
    require_reason(reason, "for the revert")
    spec, root = at.spec(pipeline), at.root
    from strandline.pipeline.manage.revert import require_revertible, revert_run  # noqa: PLC0415
    from strandline.pipeline.request.opened import OpenedLog  # noqa: PLC0415

    opened = OpenedLog.newest(root, spec)
    require_revertible(opened.ledger.store, opened.ledger.state(), run_id)
    with application(spec, root, on.choice(spec), as_json=as_json, log=opened.log, short=True) as (
        spark,
        step,
    ):
        outcome = revert_run(
            spec,
            root,
            run_id,
            spark,
            reason=reason,
            requested_by=requested_by,
            dry_run=dry_run,
            progress=step,
            opened=opened,
        )
    show.document(outcome.to_json(), as_json=as_json, human=show.outcome)


@runs_app.command("cancel")
@with_groups
def runs_cancel(
    pipeline: Pipeline,
    run_id: Run,
    *,
    reason: Reason = None,
    requested_by: RequestedBy = None,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Stop a run that has not begun to publish."""
    from strandline.pipeline.publish.abandon import cancel_run  # noqa: PLC0415

    spec = at.spec(pipeline)
    found = cancel_run(spec, at.root, run_id, reason=reason, requested_by=requested_by)
    show.document(found, as_json=as_json, human=_cancelled)


@runs_app.command("drop")
@with_groups
def runs_drop(
    pipeline: Pipeline,
    run_id: Run,
    reason: Annotated[str, typer.Option(help="Reason; kept in the run history.")],
    *,
    requested_by: RequestedBy = None,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Abandon an unpublished run; take back what it wrote."""
    require_reason(reason, "for the drop")
    from strandline.pipeline.publish.abandon import drop_run  # noqa: PLC0415

    spec = at.spec(pipeline)
    found = drop_run(spec, at.root, run_id, reason=reason, requested_by=requested_by)
    show.document(found, as_json=as_json, human=show.dropped)


@runs_app.command("list")
@with_groups
def runs_list(
    pipeline: Pipeline,
    *,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """List the runs of a pipeline, newest first."""
    from strandline.pipeline.views.runs import runs_of  # noqa: PLC0415

    show.document(runs_of(at.spec(pipeline), at.root), as_json=as_json, human=show.runs)


@runs_app.command("show")
@with_groups
def runs_show(
    pipeline: Pipeline,
    run_id: Run,
    *,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Show one run: its steps, books, audit and diff."""
    from strandline.pipeline.views.runs import run_of  # noqa: PLC0415

    show.document(run_of(at.spec(pipeline), at.root, run_id), as_json=as_json, human=show.one_run)


def _cancelled(run: Mapping[str, Any]) -> None:
    """Print a cancelled run."""
    named = f"[bold]{escape(run['pipeline'])}[/] run {escape(run['run_id'])}"
    show.out.print(f"{named}: cancelled (it was {run['was']}); it publishes nothing")
    if run["was"] == "unknown":
        where = f" on {escape(run['host'])}" if run["host"] else ""
        show.out.print(f"if it still runs{where}, it stops before it publishes")
