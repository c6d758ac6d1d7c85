"""conformance: an engine held against answers of Flink itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from strandline.cli import show
from strandline.cli.options import AsJson
from strandline.errors import InputError

if TYPE_CHECKING:
    from strandline.conformance.run import ConformanceResult


def conformance(
    files: Annotated[
        list[Path], typer.Argument(help="Scenario files or folders (.json, .json.gz).")
    ],
    engine: Annotated[str, typer.Option(help="reference or spark.")] = "spark",
    as_json: AsJson = False,
) -> None:
    """Hold an engine against answers of Flink itself, scenario by scenario."""
    if engine not in {"reference", "spark"}:
        raise InputError("--engine", f"{engine!r} is no engine", "give reference or spark")
    result = _conformance(files, on_spark=engine == "spark", as_json=as_json)
    show.document(_figures(result), as_json=as_json, human=_shown)
    if not result.passed:
        raise typer.Exit(1)


def _conformance(files: list[Path], *, on_spark: bool, as_json: bool) -> Any:
    from strandline.conformance import answer_by_reference, run_conformance  # noqa: PLC0415

    if not on_spark:
        return run_conformance(files, answer_by_reference)
    from strandline.conformance.spark_runner import SparkEngine  # noqa: PLC0415
    from strandline.lake.session import SMALL_INPUT, spark_session  # noqa: PLC0415

    with show.progress(quiet=as_json) as step:
        step("start Spark")
        spark = spark_session("strandline conformance", SMALL_INPUT)
        try:
            return run_conformance(
                files,
                SparkEngine(spark),
                at_once=4,
                on_outcome=lambda outcome: step(f"{outcome.scenario}: {outcome.verdict}"),
            )
        finally:
            spark.stop()


def _figures(result: ConformanceResult) -> dict[str, Any]:
    """The figures of a conformance run as plain values."""
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
    """A line per disagreement, the features that are not there, and the count."""
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
