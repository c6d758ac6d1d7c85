"""The groups of options of a run: what it computes, from what, and what it may change."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from strandline.cli.options import (
    AsOf,
    DryRun,
    PreviewRows,
    Reason,
    RequestedBy,
    instant_at,
    parsed,
    text_given,
)
from strandline.errors import InputError
from strandline.pipeline.request.request import MOST_SHOWN


@dataclass(frozen=True)
class Cutoff:
    """The data cut-off: the last arrival that is read, and whether the input ends there."""

    as_of: AsOf = None
    close: Annotated[
        bool,
        typer.Option(
            "--close",
            help="Treat the input of the range as ended at the cut-off: fire and close it.",
        ),
    ] = False
    reopen: Annotated[
        bool,
        typer.Option(
            "--reopen", help="Recompute windows that an earlier --close closed, as if it had not."
        ),
    ] = False

    def request(self) -> dict[str, Any]:
        """These options as fields of a request.

        Raises:
            InputError: the data cut-off is not an instant.
        """
        as_of_ms = None if self.as_of is None else instant_at("--as-of", self.as_of)
        return {"as_of_ms": as_of_ms, "close": self.close, "reopen": self.reopen}


@dataclass(frozen=True)
class Provenance:
    """The requester and the reason of a run, kept in the run history."""

    reason: Reason = None
    requested_by: RequestedBy = None
    run_key: Annotated[
        str | None,
        typer.Option(
            help="Key of the calling run, so that its retries are attempts of one run.",
            callback=text_given,
        ),
    ] = None

    def request(self) -> dict[str, Any]:
        """These options as fields of a request."""
        return asdict(self)


@dataclass(frozen=True)
class Limits:
    """The limits of what a run reads and removes."""

    accept_loss: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="Go on although processed rows are missing from the landing table, for this "
            "reason.",
        ),
    ] = None
    allow_removals: Annotated[
        bool,
        typer.Option(
            "--allow-removals", help="Allow any share of published windows to be removed."
        ),
    ] = False
    max_bytes: Annotated[
        str | None,
        typer.Option(help="Refuse a run that would read more of the landing table, such as 20GB."),
    ] = None

    def request(self) -> dict[str, Any]:
        """These options as fields of a request.

        Raises:
            InputError: a loss is accepted without a reason, or the number of bytes is not a number.
        """
        if self.accept_loss is not None and not self.accept_loss.strip():
            raise InputError("--accept-loss", "empty", "give the reason why the rows are missing")
        from strandline.spec.values import parse_bytes  # noqa: PLC0415

        given = self.max_bytes
        most = None if given is None else parsed("--max-bytes", given, parse_bytes)
        return asdict(self) | {"max_bytes": most}


@dataclass(frozen=True)
class RulesOfRun:
    """Rules of one run that override the rules of the pipeline's file."""

    allowed_lateness: Annotated[
        str | None,
        typer.Option(help="Allowed lateness of this run alone; needs --reason."),
    ] = None
    bound: Annotated[
        str | None,
        typer.Option(help="Bound of the watermark of this run alone; needs --reason."),
    ] = None

    def overrides(self) -> dict[str, str]:
        """The given rules by their keys in a pipeline file."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Effect:
    """Whether a run is a dry run or replaces all published rows, and the size of its preview."""

    dry_run: DryRun = False
    recreate: Annotated[
        bool,
        typer.Option(
            "--recreate",
            help="Replace everything published so far, also where window or key have changed; "
            "needs --reason.",
        ),
    ] = False
    preview_rows: PreviewRows = MOST_SHOWN

    def request(self) -> dict[str, Any]:
        """These options as fields of a request."""
        return asdict(self)


@dataclass(frozen=True)
class Repetition:
    """Whether a run that would only repeat a published run is computed.

    By default the command then shows the published run, and starts no engine.
    """

    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Compute even if the same run is published, or the day is processed."
        ),
    ] = False
    repeat_only: Annotated[
        bool,
        typer.Option(
            "--repeat-only",
            help="Compute nothing: exit with 0 if the result is known already, else with 5.",
        ),
    ] = False

    def require_one(self) -> None:
        """Check that at most one of the options is given.

        Raises:
            InputError: both are given.
        """
        if self.force and self.repeat_only:
            raise InputError("--repeat-only", "contradicts --force", "give one of them")
