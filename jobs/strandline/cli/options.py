"""The options that several commands have, and the parsing of their texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from strandline.errors import InputError
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.pipeline.request.request import MOST_SHOWN

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
End = Annotated[str, typer.Option(help="End of the range, exclusive.")]
AsOf = Annotated[
    str | None,
    typer.Option(help="Data cut-off: use only arrivals before this instant."),
]
Close = Annotated[
    bool,
    typer.Option(
        "--close", help="Treat the input of the range as ended at the cut-off: fire and close it."
    ),
]
Reopen = Annotated[
    bool,
    typer.Option(
        "--reopen", help="Recompute windows that an earlier --close closed, as if it had not."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes; write nothing.")]
Reason = Annotated[str | None, typer.Option(help="Reason; kept in the run history.")]
RequestedBy = Annotated[str | None, typer.Option(help="Who asked; kept in the run history.")]
RunKey = Annotated[
    str | None,
    typer.Option(help="Key of the calling run, so that its retries are attempts of one run."),
]
AcceptLoss = Annotated[
    str | None,
    typer.Option(
        metavar="REASON",
        help="Go on although processed rows are missing from the landing table, for this reason.",
    ),
]
AllowRemovals = Annotated[
    bool,
    typer.Option("--allow-removals", help="Allow any share of published windows to be removed."),
]
Recreate = Annotated[
    bool,
    typer.Option(
        "--recreate",
        help="Replace everything published so far, also where window or key have changed; needs "
        "--reason.",
    ),
]
AllowedLateness = Annotated[
    str | None,
    typer.Option(help="Allowed lateness of this run alone; needs --reason."),
]
Bound = Annotated[
    str | None,
    typer.Option(help="Bound of the watermark of this run alone; needs --reason."),
]
PreviewRows = Annotated[
    int,
    typer.Option(
        min=0,
        max=MOST_SHOWN,
        help="The most windows of each kind (added, changed, removed) to list in the preview.",
    ),
]
MaxBytes = Annotated[
    str | None,
    typer.Option(help="Refuse a run that would read more of the landing table, such as 20GB."),
]
Prepare = Annotated[
    bool,
    typer.Option("--prepare", help="Compute, and keep the result for `strandline runs publish`."),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Compute even if the same run is published, or the day is processed."
    ),
]
RepeatOnly = Annotated[
    bool,
    typer.Option(
        "--repeat-only",
        help="Compute nothing: exit with 0 if the result is known already, else with 5.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(help="Spark master, for the engine spark. [spark-submit's master, or local]"),
]
Engine = Annotated[
    str | None,
    typer.Option(help="spark, connect or sail. [STRANDLINE_ENGINE, engine: in the file, spark]"),
]
Remote = Annotated[
    str | None,
    typer.Option(
        metavar="sc://HOST:PORT", help="Server, for the engine connect. [STRANDLINE_REMOTE]"
    ),
]
TrustThisMachine = Annotated[
    bool,
    typer.Option(
        "--trust-this-machine",
        help="Allow sail where others can log in. [STRANDLINE_TRUST_THIS_MACHINE]",
    ),
]


def given_path(option: str, text: str | None) -> Path | None:
    """The path in an option; None if the option is not given.

    Raises:
        InputError: the path is empty, as when a script's variable is not set; `Path("")` would be
            the current folder.
    """
    return None if text is None else Path(not_empty(option, text))


def not_empty(option: str, text: str) -> str:
    """The text of an option.

    Raises:
        InputError: the text is empty, as when a script's variable is not set.
    """
    if not text:
        raise InputError(option, "empty", "name a path, or leave it out")
    return text


def require_reason(reason: str, what: str) -> None:
    """Check that the reason of a command is not blank.

    Raises:
        InputError: it is; `what` completes "give the reason".
    """
    if not reason.strip():
        raise InputError("--reason", "empty", f"give the reason {what}")


def range_of(start: str | None, end: str | None) -> TimeRange:
    """The range of --start and --end, open at an end that is not given.

    Raises:
        InputError: a text is not an instant, or the end is not after the start.
    """
    within = TimeRange(
        EVERYTHING.start_ms if start is None else instant_at("--start", start),
        EVERYTHING.end_ms if end is None else instant_at("--end", end),
    )
    if within.start_ms >= within.end_ms:
        raise InputError(
            "--start", f"{start} is not before --end {end}", "give an end after the start"
        )
    return within


def instant_at(option: str, text: str) -> int:
    """The instant in an option, in ms since 1970.

    Raises:
        InputError: the text is not an instant.
    """
    from strandline.spec.values import parse_instant  # noqa: PLC0415

    return parsed(option, text, parse_instant)


def parsed(option: str, text: str, parser: Callable[[str], int]) -> int:
    """The number in an option, by a parser of texts of one kind.

    Raises:
        InputError: the text is none of that kind.
    """
    try:
        return parser(text)
    except (ValueError, OverflowError) as error:
        raise InputError(option, f"{text!r} is {error}") from None
