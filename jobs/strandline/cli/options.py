"""The options that several commands have, and the parsing of their texts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from strandline.errors import InputError
from strandline.model.intervals import EVERYTHING, TimeRange
from strandline.pipeline.request.request import MOST_SHOWN


def not_empty(option: str, text: str, way_out: str = "name a path, or leave it out") -> str:
    """The text of an option.

    Raises:
        InputError: the text is empty, as when a script's variable is not set.
    """
    if not text:
        raise InputError(option, "empty", way_out)
    return text


def text_given(option: typer.CallbackParam, text: str | None) -> str | None:
    """The text of an option, or None if it is not given.

    Raises:
        InputError: the text is empty.
    """
    if text is None:
        return None
    return not_empty(option.opts[0], text, "give a text, or leave it out")


Pipeline = Annotated[str, typer.Argument(help="The pipeline's name.", metavar="PIPELINE")]
Pipelines = Annotated[
    str | None, typer.Option(help="Folder of pipeline files. [STRANDLINE_PIPELINES, pipelines/]")
]
LakeAt = Annotated[
    str | None,
    typer.Option("--lake", help="Lake root: a folder or a URI. [STRANDLINE_LAKE, lake/]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document for machines.")]
AsOf = Annotated[
    str | None,
    typer.Option(help="Data cut-off: use only arrivals before this instant."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes; write nothing.")]
Reason = Annotated[str | None, typer.Option(help="Reason; kept in the run history.")]
RequestedBy = Annotated[
    str | None, typer.Option(help="Who asked; kept in the run history.", callback=text_given)
]
PreviewRows = Annotated[
    int,
    typer.Option(
        min=0,
        max=MOST_SHOWN,
        help="The most windows of each kind (added, changed, removed) to list in the preview.",
    ),
]
Since = Annotated[
    str | None, typer.Option(metavar="DATE", help="First day shown. [89 days before the last]")
]
Until = Annotated[
    str | None, typer.Option(metavar="DATE", help="Last day shown. [the last there is]")
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


def asked_days(since: str | None, until: str | None) -> dict[str, date | None]:
    """The days of --since and --until; None for an option that is not given.

    Raises:
        InputError: a text is not a day, or the last day is before the first.
    """
    first, last = _day("--since", since), _day("--until", until)
    if first is not None and last is not None and first > last:
        problem = f"{first} is after --until {last}"
        raise InputError("--since", problem, "give the earlier day first")
    return {"since": first, "until": last}


def _day(option: str, text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InputError(
            option, f"{text!r} is not a date", "write one such as 2013-01-15"
        ) from None
