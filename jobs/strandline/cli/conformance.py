"""conformance: the comparison of an engine with recorded answers of Flink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strandline.cli import show
from strandline.cli.console import escape
from strandline.cli.groups import EngineOptions
from strandline.cli.options import AsJson, Remote, TrustThisMachine
from strandline.cli.progress import progress
from strandline.cli.running import SHOWN_AS
from strandline.errors import InputError

if TYPE_CHECKING:
    from strandline.conformance.run import Case, ConformanceResult
    from strandline.lake.sessions.choice import EngineChoice


def conformance(
    files: Annotated[
        list[Path], typer.Argument(help="Scenario files or folders (.json, .json.gz).")
    ],
    engine: Annotated[
        str | None,
        typer.Option(help="reference, spark, connect or sail. [STRANDLINE_ENGINE, spark]"),
    ] = None,
    remote: Remote = None,
    trust_this_machine: TrustThisMachine = False,
    as_json: AsJson = False,
) -> None:
    """Compare an engine with recorded answers of Apache Flink."""
    from strandline.conformance import (  # noqa: PLC0415
        answer_by_reference,
        cases_of,
        run_conformance,
    )

    choice = _choice(engine, remote, trust_this_machine=trust_this_machine)
    cases = [*cases_of(files)]
    if choice is None:
        result = run_conformance(cases, answer_by_reference)
    else:
        result = _on_engine(cases, choice, as_json=as_json)
    show.document(_figures(result), as_json=as_json, human=_shown)
    if not result.passed:
        raise typer.Exit(1)


def _choice(
    engine: str | None, remote: str | None, *, trust_this_machine: bool
) -> EngineChoice | None:
    """The engine of the options; None: the reference.

    Raises:
        InputError: there is no such engine, or it has no such option.
    """
    from strandline.lake.sessions.choice import ENGINES  # noqa: PLC0415

    known = ("reference", *ENGINES)
    if engine and engine not in known:
        raise InputError("--engine", f"{engine!r} is no engine", f"give one of {', '.join(known)}")
    if engine != "reference":
        return EngineOptions(engine, remote=remote, trust_this_machine=trust_this_machine).choice()
    if remote is not None or trust_this_machine:
        problem = "is no option of the reference, which computes in this process"
        option = "--trust-this-machine" if remote is None else "--remote"
        raise InputError(option, problem, "leave it out")
    return None


def _on_engine(cases: Sequence[Case], choice: EngineChoice, *, as_json: bool) -> ConformanceResult:
    from strandline.conformance.on_engine import run_on_engine  # noqa: PLC0415

    with progress(quiet=as_json) as step:
        step(f"start {SHOWN_AS[choice.name]}")
        return run_on_engine(
            cases,
            choice,
            on_outcome=lambda outcome: step(f"{outcome.scenario}: {outcome.verdict}"),
        )


def _figures(result: ConformanceResult) -> dict[str, Any]:
    """The result of a conformance run as a JSON document."""
    return {
        "agreed": len(result.agreed),
        "differ": result.differ,
        "unsupported": result.unsupported_features,
        "unsupported_scenarios": len(result.unsupported),
        "failed": result.failed,
        "disagreements": [
            {"scenario": d.scenario, "field": d.field, "expected": d.expected, "got": d.got}
            for d in result.disagreements
        ],
    }


def _shown(figures: Mapping[str, Any]) -> None:
    """A line for each disagreement, the unsupported features, and the counts."""
    for one in figures["disagreements"]:
        show.out.print(
            escape(
                f"{one['scenario']}: {one['field']}: expected {one['expected']}, got {one['got']}"
            )
        )
    for name, problem in figures["failed"].items():
        show.out.print(f"[red]failed[/] {escape(name)}: {escape(problem)}")
    for feature, names in figures["unsupported"].items():
        show.out.print(f"unsupported: {escape(feature)}: {len(names)} scenarios")
    show.out.print(
        f"{figures['agreed']} agreed, {len(figures['differ'])} differ, "
        f"{figures['unsupported_scenarios']} unsupported"
        + (f", {len(figures['failed'])} failed to run" if figures["failed"] else "")
    )
