"""The data-quality report: one HTML page that needs nothing else, neither a network nor Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from strandline.engine.idleness.state import SourceState
from strandline.quality.findings.check import Finding
from strandline.quality.report.calendar import calendar
from strandline.quality.report.format import NOTHING, duration, percent
from strandline.quality.report.held_back_by import held_back_by
from strandline.quality.report.quarantine import REFUSED, lateness_plot, quarantine_plot, saved_by
from strandline.quality.report.runs import run_lines, runs_left_out
from strandline.quality.report.watermarks import watermarks
from strandline.spec import PipelineSpec
from strandline.spec.joined import JoinedSpec, TwoSourcesSpec
from strandline.visible import visible


@dataclass(frozen=True)
class ReportTables:
    """What a report is made from. Each table may be empty, but has its columns; others are ignored.

    Instants are `datetime64` columns that know their zone, dates are `datetime.date`.

    Attributes:
        completeness: the table `completeness`.
        quarantine: how many records were quarantined: `reason`, `day` (the table's
            `quarantine_date`), `records`.
        lateness: how many records were how late: `late_by_ms`, rounded up as one likes, `records`.
        channels: the `timeline`'s rows of kind `channel`: `channel`, `arrival_date`, `settled_ms`
            and, if it is there, `pending_ms`.
        runs: the ledger `runs`.
        latest: the same up to the last observed day, as far back as it takes to tell where each
            channel stands; None: `channels`.
        source: where channels can go idle: where the source stands after the last observed day.
    """

    completeness: pd.DataFrame
    quarantine: pd.DataFrame
    lateness: pd.DataFrame
    channels: pd.DataFrame
    runs: pd.DataFrame
    latest: pd.DataFrame | None = None
    source: SourceState | None = None


@dataclass(frozen=True)
class Shown:
    """The days that a report shows, both among them, and what all days hold.

    Attributes:
        since: the first day; None: the first there is.
        until: the last day; None: the last there is.
        totals: of all days: `first_day`, `last_day`, `slots`, `windows`, `quarantine`.
    """

    since: str | None
    until: str | None
    totals: Mapping[str, Any]


_MEANINGS = {
    "late": "arrived after its window had closed",
    "no_window": "lies in no window",
    "null_event_time": "has no event time",
    "unparsable_event_time": "has an event time that is no time",
    "null_arrival": "has no arrival",
    "arrival_outside_partition": "arrived outside its arrival date",
    "ahead_of_arrival": "is too far in the future",
    "null_channel": "has no channel",
    "undeclared_channel": "has a channel that is not declared",
    "null_key": "has a key that is null",
    "invalid": "does not meet the pipeline’s own rule",
    "duplicate": "has been seen before",
    "event_time_out_of_range": "lies outside the years 0001 to 9999",
}


@dataclass(frozen=True)
class Reason:
    """How many records were quarantined for a reason."""

    name: str
    records: int
    is_refused: bool


@dataclass(frozen=True)
class Totals:
    """What became of all records: over the slots, and over the quarantine."""

    on_time: int
    late_accepted: int
    late: int
    no_window: int
    slots: int
    closed: int
    gaps: int
    reasons: tuple[Reason, ...]

    @property
    def judged(self) -> int:
        """The records that were accepted or late."""
        return self.on_time + self.late_accepted + self.late

    @property
    def malformed(self) -> int:
        """The quarantined records that no watermark ever judged."""
        return sum(reason.records for reason in self.malformed_reasons)

    @property
    def malformed_reasons(self) -> tuple[Reason, ...]:
        """The reasons of malformed records, the most frequent first."""
        return tuple(reason for reason in self.reasons if not reason.is_refused)


def build_report(
    tables: ReportTables,
    *,
    spec: PipelineSpec,
    made_from: str,
    shown: Shown | None = None,
    notice: str | None = None,
    findings: Sequence[Finding] = (),
) -> str:
    """The report of a pipeline as one self-contained HTML page.

    Whatever stands in the tables is shown as text: none of it can become markup.

    Args:
        tables: what was read from the lake.
        spec: the pipeline.
        made_from: what the tables were read from, such as a lake and its ledger's position.
        shown: of which days they are; None: of all.
        notice: what a reader must know before anything else; None: nothing.
        findings: what is not as it must be, the gravest first.
    """
    latest = tables.channels if tables.latest is None else tables.latest
    runs, older_runs = run_lines(tables.runs), runs_left_out(tables.runs)
    published = [run for run in runs if run.outcome == "published"]
    slots = calendar(tables.completeness)
    progress = watermarks(tables.channels, spec, latest)
    environment = Environment(
        loader=PackageLoader("strandline.quality.report"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"duration": duration, "plot": _plot}
    return environment.get_template("report.html.j2").render(
        spec=spec,
        made_from=made_from,
        shown=shown,
        notice=notice,
        findings=findings,
        totals=_totals(tables),
        meanings=_MEANINGS,
        percent=percent,
        rules=_rules(spec),
        runs=runs,
        older_runs=older_runs,
        last=runs[0] if runs else None,
        published=published[0] if published else None,
        frontier=next((run.frontier for run in published if run.frontier != NOTHING), NOTHING),
        audited=[run for run in runs if run.audit],
        calendar=slots,
        quarantine=quarantine_plot(tables.quarantine),
        lateness=lateness_plot(tables.lateness),
        saved=saved_by(tables.lateness),
        watermarks=progress,
        held_back=held_back_by(latest, spec, tables.source),
        plotly=Markup(get_plotlyjs()),
    )


def _shown(value: Any) -> Any:
    """A value of a template; in a text control signs, but for line breaks, are written out."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return visible(value, keep="\n") if is_text else value


def _plot(figure: go.Figure) -> Markup:
    """A figure as JSON inside a script element, which only `</script` could leave."""
    return Markup(figure.to_json().replace("<", "\\u003c"))


def _rules(spec: PipelineSpec) -> tuple[str, str, str]:
    """The windows, the watermark and the lateness, in a few words each."""
    watermark = _watermark(spec)
    if isinstance(spec, TwoSourcesSpec):
        watermark = "; ".join(f"{name}: {_watermark(one)}" for name, one in spec.sides.items())
    if isinstance(spec, JoinedSpec):
        lower, upper = (_signed(ms) for ms in (spec.join.lower_ms, spec.join.upper_ms))
        return f"pairs within {lower} and {upper}", watermark, "late behind the watermark"
    window = " ".join(
        f"{name} {duration(value) if isinstance(value, int) else value}"
        for name, value in spec.window.model_dump().items()
        if value != 0
    )
    lateness = f"allowed lateness {duration(spec.allowed_lateness)}"
    return f"{window} windows", watermark, lateness


def _watermark(spec: PipelineSpec) -> str:
    bound = getattr(spec.watermark, "bound", None)
    return spec.watermark.strategy + (f" {duration(bound)}" if bound is not None else "")


def _signed(ms: int) -> str:
    return f"-{duration(-ms)}" if ms < 0 else duration(ms)


def _totals(tables: ReportTables) -> Totals:
    slots = tables.completeness
    reasons = tables.quarantine.groupby("reason")["records"].sum()
    found = [Reason(str(name), int(count), name in REFUSED) for name, count in reasons.items()]
    is_gap = slots["gap"].astype(bool)
    return Totals(
        on_time=int(slots["on_time"].sum()),
        late_accepted=int(slots["late_accepted"].sum()),
        late=int(slots["late"].sum()),
        no_window=int(slots["no_window"].sum()),
        slots=int((~is_gap).sum()),
        closed=int((~is_gap & (slots["state"] == "closed")).sum()),
        gaps=int(is_gap.sum()),
        reasons=tuple(sorted(found, key=lambda one: (not one.is_refused, -one.records, one.name))),
    )
