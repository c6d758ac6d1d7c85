"""The data-quality report: one self-contained HTML page, made without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from strandline.model.intervals import text_of, text_or_none
from strandline.quality.advisable import why_not_advisable
from strandline.quality.figures import NOTHING, day_or_instant, exact_duration, percent
from strandline.quality.findings.check import Finding
from strandline.quality.progress import closed_up_to
from strandline.quality.report.advised import advised
from strandline.quality.report.calendar import calendar, late_calendar
from strandline.quality.report.quarantine import lateness_plot, quarantine_plots, saved_by, who
from strandline.quality.report.runs import MOST_RUNS, revisions_plot, run_lines, runs_left_out
from strandline.quality.report.state import State, changes_since, summary_of
from strandline.quality.report.tables import ReportTables, ShownDays, meanings_for, totals_of
from strandline.quality.report.volume import volume
from strandline.quality.report.watermarks import watermarks
from strandline.quality.templates import templates_of
from strandline.spec import PipelineSpec
from strandline.spec.joined import JoinedSpec
from strandline.visible import number_of

_FILTERS: Mapping[str, Callable[..., str]] = {"duration": exact_duration, "number_of": number_of}


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes:
        html: the page.
        summary: the figures that the next report is compared with.
    """

    html: str
    summary: Mapping[str, Any]


def build_report(
    tables: ReportTables,
    *,
    spec: PipelineSpec,
    made_from: str,
    shown: ShownDays,
    made_at: str = "",
    notice: str | None = None,
    findings: Sequence[Finding] = (),
) -> Page:
    """The report of a pipeline as one self-contained HTML page.

    Values of the tables are escaped.

    Args:
        tables: the pipeline's tables.
        spec: the pipeline.
        made_from: the origin of the tables, such as a lake and its ledger's position.
        shown: the days of the tables.
        made_at: the time of the report as text; empty: it is not shown.
        notice: a note at the top of the page; None: there is none.
        findings: the pipeline's findings.
    """
    runs, totals = run_lines(tables.runs), totals_of(tables)
    state = State.of(findings, runs)
    processed_ms = tables.processed_ms
    processed = NOTHING if processed_ms is None else _shown(text_of(processed_ms))
    summary = summary_of(
        shown.totals,
        made_at=made_at,
        runs=len(tables.runs),
        processed_up_to=processed,
        state=str(state),
    )
    html = (
        templates_of("strandline.quality.report", _FILTERS)
        .get_template("report.html.j2")
        .render(
            spec=spec,
            is_interval_join=isinstance(spec, JoinedSpec),
            has_advice=why_not_advisable(spec) is None,
            made_from=made_from,
            made_at=made_at,
            shown=shown,
            notice=notice,
            state=state,
            changes=changes_since(tables.before, summary),
            totals=totals,
            meanings=meanings_for(spec),
            percent=percent,
            rules=_rules(spec),
            processed_up_to=processed,
            closed_up_to=closed_up_to(
                text_or_none(tables.closed_ms), shown.totals["slots"], _shown
            ),
            **_of_runs(tables.runs, runs),
            **_of_records(tables, spec, shown),
            watermarks=watermarks(tables.channels, spec, tables.latest, processed_ms, shown.until),
            held_back=tables.watermark,
        )
    )
    return Page(html, summary)


def _of_runs(
    every: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The template's variables about runs."""
    return {
        "runs": runs,
        "last": runs[0] if runs else None,
        "published": next((run for run in runs if run["status"] == "published"), None),
        "most_runs": MOST_RUNS,
        "older_runs": runs_left_out(every),
        "audited": [run for run in runs if run["audit"]],
        "revisions": revisions_plot(every),
    }


def _of_records(tables: ReportTables, spec: PipelineSpec, shown: ShownDays) -> dict[str, Any]:
    """The template's variables about records and slots."""
    channel = spec.source.channel
    named = {*spec.source.key.values(), *([channel] if channel else [])}
    return {
        "calendar": calendar(tables.completeness),
        "late_calendar": late_calendar(tables.completeness),
        "volume": volume(
            tables.records, shown.since, shown.until, processed_ms=tables.processed_ms
        ),
        "quarantine": quarantine_plots(tables.quarantine),
        "who": () if tables.values is None else who(tables.values, named),
        "lateness": lateness_plot(tables.lateness),
        "saved": saved_by(tables.lateness),
        "advised": advised(tables.advice),
    }


def _shown(instant: str) -> str:
    return day_or_instant(datetime.fromisoformat(instant))


def _rules(spec: PipelineSpec) -> tuple[str, str, str]:
    """The pipeline's windows, watermark and allowed lateness as short texts."""
    watermark = "; ".join(
        f"{name}: {_watermark(side)}" if name else _watermark(side)
        for name, side in spec.sides.items()
    )
    if isinstance(spec, JoinedSpec):
        lower, upper = (_signed(ms) for ms in (spec.join.lower_ms, spec.join.upper_ms))
        return f"pairs within {lower} and {upper}", watermark, "late behind the watermark"
    written = spec.window.model_dump(exclude_defaults=True, by_alias=True)
    is_length = not spec.window.all_time
    window = " ".join(
        f"{name} {exact_duration(value) if is_length and isinstance(value, int) else value or ''}"
        for name, value in written.items()
    ).strip()
    lateness = f"allowed lateness {exact_duration(spec.allowed_lateness)}"
    return f"{window} windows", watermark, lateness


def _watermark(spec: PipelineSpec) -> str:
    if spec.reads_results_of is not None:
        return f"the watermark of {spec.reads_results_of}"
    bound = getattr(spec.watermark, "bound", None)
    return spec.watermark.strategy + (f" {exact_duration(bound)}" if bound is not None else "")


def _signed(ms: int) -> str:
    return f"-{exact_duration(-ms)}" if ms < 0 else exact_duration(ms)
