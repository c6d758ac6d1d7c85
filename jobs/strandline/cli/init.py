"""init: a pipeline file proposed from a table, or from files that are landed as a table."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec as find_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strandline.cli import show
from strandline.cli.console import escape, plain_table
from strandline.cli.groups import EngineOptions, Places
from strandline.cli.options import AsJson, not_empty
from strandline.cli.running import application
from strandline.errors import InputError, not_writable
from strandline.visible import number_of

if TYPE_CHECKING:
    from strandline.lake.store.lake import Lake
    from strandline.proposal.proposal import Proposal
    from strandline.spec import PipelineSpec

_COLOURS = {"sure": "green", "likely": "green", "guess": "yellow", "TODO": "red"}


@dataclass(frozen=True)
class _Asked:
    """The input of a proposal, and the name of the pipeline."""

    source: Annotated[
        list[str],
        typer.Option(
            "--from",
            metavar="TABLE|FILES",
            help="A Delta table (a path, a URI, or below the lake); or CSV, JSON or Parquet files: "
            "a file, a folder or a pattern. May be given several times.",
        ),
    ]
    name: Annotated[
        str | None, typer.Option(help="The pipeline's name. [as the table or the file]")
    ] = None
    land: Annotated[
        bool,
        typer.Option("--land", help="Land the files as a Delta table, a partition an arrival day."),
    ] = False
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the pipeline file where there is one.")
    ] = False
    advise: Annotated[
        bool,
        typer.Option(help="Count the records that each lateness would lose; needs an engine."),
    ] = True


def init(asked: _Asked, *, as_json: AsJson = False, on: EngineOptions, at: Places) -> None:
    """Propose a pipeline file from a table or from files.

    It says what it has guessed, how sure it is, and why.
    """
    from strandline.proposal.proposal import propose  # noqa: PLC0415
    from strandline.proposal.table import table_at  # noqa: PLC0415

    root, places = at.root, [not_empty("--from", place) for place in asked.source]
    if asked.name is not None:
        _require_name(asked.name)
    table = table_at(places, root, asked.name)
    target = at.folder / f"{table.name}.yaml"
    _require_free(target, table.name, force=asked.force)
    proposal = propose(table)
    _spec_of(proposal, target.name)
    notes: list[str] = []
    landed = table.is_landed
    if asked.land:
        notes.append(_landed(table, proposal, root))
        landed = True
    elif not landed:
        notes.append(
            "not landed yet: give --land, or land the files yourself (docs/landing-contract.md)"
        )
    engine = None
    if landed and asked.advise and proposal.roles.arrival is not None:
        proposal, engine = _advised(proposal, root, on, notes, as_json=as_json)
    _spec_of(proposal, target.name)
    _write(target, proposal.text)
    found = {
        **proposal.to_json(),
        "file": str(target),
        "landed": landed,
        "engine": engine,
        "notes": notes,
    }
    show.document(found, as_json=as_json, human=_show)


def _require_name(name: str) -> None:
    from strandline.proposal.table import short_name  # noqa: PLC0415

    if name.lower() != short_name(name):
        raise InputError(
            "--name",
            f"{name!r} is not a name of a pipeline",
            f"use letters from a to z, digits, _ and -, such as {short_name(name)}",
        )


def _require_free(target: Path, name: str, *, force: bool) -> None:
    """Refuse to overwrite a pipeline.

    Raises:
        InputError: a pipeline has this name.
    """
    from strandline.spec import spec_files  # noqa: PLC0415
    from strandline.spec.loading import name_in  # noqa: PLC0415

    if target.exists() and not force:
        raise InputError(str(target), "is there already", "give another --name, or --force")
    for path in spec_files(target.parent):
        if path != target and name_in(path) == name:
            raise InputError(name, f"is defined by {path.name}", "give another --name")


def _landed(table: Any, proposal: Proposal, root: Lake) -> str:
    from strandline.proposal.land import land  # noqa: PLC0415

    if table.is_landed:
        raise InputError("--land", f"{table.said} is a Delta table already", "leave it out")
    uri = root.resolve(table.said)
    landed, landed_before = land(table, proposal.roles, uri)
    were = "was" if landed_before == 1 else "were"
    before = f"; {landed_before} {were} there already" if landed_before else ""
    return f"landed {number_of(landed, 'file')} in {uri}{before}"


def _spec_of(proposal: Proposal, origin: str) -> PipelineSpec:
    """The proposal as a run reads it, so that only a valid pipeline file is written."""
    from strandline.spec import parse_spec  # noqa: PLC0415
    from strandline.spec.documents import document_of  # noqa: PLC0415

    return parse_spec(document_of(proposal.text.encode(), origin=origin), origin=origin)


def _advised(
    proposal: Proposal, root: Lake, on: EngineOptions, notes: list[str], *, as_json: bool
) -> tuple[Proposal, str | None]:
    """The advised proposal with the engine's name; or the reason why there is no advice."""
    from strandline.lake.landing.log import LandingLog  # noqa: PLC0415
    from strandline.pipeline.advise.advice import Question  # noqa: PLC0415

    spec = _spec_of(proposal, proposal.name)
    chosen = on
    if on.engine is None and not on.remote and not os.environ.get("STRANDLINE_ENGINE"):
        chosen = EngineOptions(
            "sail" if find_module("pysail") else None, on.master, None, on.trust_this_machine
        )
    question = Question(keep=Fraction("0.999"), now_ms=int(time.time() * 1000))
    try:
        choice = chosen.choice(spec)
        log = LandingLog.of(root, spec)
        with application(spec, root, choice, as_json=as_json, log=log, short=True) as (spark, step):
            from strandline.pipeline.advise.advise import advise  # noqa: PLC0415

            found = advise(spec, root, question, spark, step).to_json()
    except InputError as error:
        notes.append(f"the advisor could not count: {error}")
        return proposal, None
    return (proposal.advised(found) if found["records"] else proposal), choice.name


def _write(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        beside.write_text(text, encoding="utf-8")
        beside.replace(target)
    except OSError as error:
        raise not_writable(str(target), error) from None


def _show(found: Mapping[str, Any]) -> None:
    """Print the guesses as a table, the problems, and the next commands."""
    table = plain_table()
    for name in ("key", "proposed", "", "why"):
        table.add_column(name, overflow="fold")
    for guess in found["guesses"]:
        certainty = guess["certainty"]
        table.add_row(
            guess["key"],
            escape(guess["value"]),
            f"[{_COLOURS[certainty]}]{certainty}[/]",
            escape(guess["why"]),
        )
    show.out.print(table)
    for problem in found["problems"]:
        show.out.print(f"[red]TODO[/] {escape(problem)}")
    for note in found["notes"]:
        show.out.print(f"note: {escape(note)}")
    show.out.print(f"written: {escape(found['file'])}")
    name, engine = escape(found["pipeline"]), found["engine"]
    on = f" --engine {engine}" if engine else ""
    if found["landed"]:
        show.out.print(
            f"next: read it, then strandline validate {name} and strandline advance {name}"
            f" --to {found['advance_to']}{on}"
        )
