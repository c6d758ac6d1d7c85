"""runs: its commands, of which `list` and `show` are defined here."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from strandline.cli import run_actions, show
from strandline.cli.groups import Places, with_groups
from strandline.cli.options import AsJson, Pipeline


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


runs_app.command("publish")(with_groups(run_actions.runs_publish))
runs_app.command("revert")(with_groups(run_actions.runs_revert))
runs_app.command("cancel")(with_groups(run_actions.runs_cancel))
runs_app.command("drop")(with_groups(run_actions.runs_drop))


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
    run_id: run_actions.Run,
    *,
    as_json: AsJson = False,
    at: Places,
) -> None:
    """Show one run: its steps, books, audit and diff."""
    from strandline.pipeline.views.runs import run_of  # noqa: PLC0415

    show.document(run_of(at.spec(pipeline), at.root, run_id), as_json=as_json, human=show.one_run)
