"""runs: the commands that show the run history, and those that change the state of a run."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from strandline.cli import in_hand, show
from strandline.cli.groups import Places, with_groups
from strandline.cli.options import AsJson, Pipeline, RequestedBy


class _ListedByDefault(TyperGroup):
    """`runs PIPELINE` is `runs list PIPELINE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `list` if no command is given."""
        if args and args[0] not in {*self.commands, "--help"}:
            args = ["list", *args]
        return list(super().parse_args(ctx, args))


runs_app = typer.Typer(
    cls=_ListedByDefault, help="List runs; show, publish, cancel, drop or revert one."
)


runs_app.command("publish")(with_groups(in_hand.runs_publish))
runs_app.command("revert")(with_groups(in_hand.runs_revert))
runs_app.command("cancel")(with_groups(in_hand.runs_cancel))


@runs_app.command("list")
@with_groups
def runs_list(
    pipeline: Pipeline,
    *,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """List the runs of a pipeline, newest first."""
    from strandline.pipeline.views.status import runs_of  # noqa: PLC0415

    show.document(runs_of(at.spec(pipeline), at.root), as_json=as_json, human=show.runs)


@runs_app.command("show")
@with_groups
def runs_show(
    pipeline: Pipeline,
    run_id: Annotated[str, typer.Argument(help="Id of the run, see `strandline runs list`.")],
    *,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Show one run: its steps, books, audit and diff."""
    from strandline.pipeline.views.status import run_of  # noqa: PLC0415

    show.document(run_of(at.spec(pipeline), at.root, run_id), as_json=as_json, human=show.one_run)


@runs_app.command("drop")
@with_groups
def runs_drop(
    pipeline: Pipeline,
    run_id: in_hand.Run,
    reason: Annotated[str, typer.Option(help="Reason; kept in the run history.")],
    *,
    requested_by: RequestedBy = None,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Abandon an unpublished run; take back what it wrote."""
    from strandline.pipeline.publish.abandon import drop_run  # noqa: PLC0415

    spec = at.spec(pipeline)
    found = drop_run(spec, at.root, run_id, reason=reason, requested_by=requested_by)
    show.document(found, as_json=as_json, human=show.dropped)
