"""Writes the report page of a pipeline, from small reads of its tables; no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from strandline.errors import InputError, not_writable
from strandline.lake.publish.batches import ROWS, sums_by
from strandline.lake.store.days import Days, read_days
from strandline.lake.store.lake import Lake
from strandline.lake.store.store import Store
from strandline.lake.timeline.rows import TimelineTable
from strandline.lake.timeline.timeline import channel_days
from strandline.pipeline.views.audited_data import rows_by_day
from strandline.pipeline.views.calendar_rows import rows_on
from strandline.pipeline.views.channels import with_emissions
from strandline.pipeline.views.kept_advice import document_in, kept_advice
from strandline.pipeline.views.late_of_newer import LateOfNewer
from strandline.pipeline.views.runs import runs_for_report
from strandline.pipeline.views.shown import Shown
from strandline.pipeline.views.shown_days import shown_days, totals
from strandline.pipeline.views.slots import COUNTS
from strandline.pipeline.views.values import frequent_values
from strandline.quality.completeness import in_ms
from strandline.quality.figures import instant
from strandline.quality.findings.volume import first_compared
from strandline.quality.report.page import Page, build_report
from strandline.quality.report.tables import ReportTables, ShownDays
from strandline.spec import PipelineSpec

_SUMMARY = "report.json"
"""The file beside the page with the summary that the next report compares itself with."""
_LATENESS_STEP_MS = 60_000
_PART_MS = 15 * 60_000
"""The shortest cell of a calendar: rows for many gaps are divided into cells."""
_SLOTS = ("slot_start", "slot_end", "state", "gap", "fired_at", "closed_at", *COUNTS, "slots")


def write_report(
    spec: PipelineSpec,
    lake: Lake,
    folder: Path | None = None,
    *,
    since: date | None = None,
    until: date | None = None,
    data_docs: bool = True,
    now_ms: int | None = None,
) -> dict[str, Any]:
    """Write the report and the Data Docs of a pipeline.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        folder: where to write; None: `_reports` beside the tables, where that is a folder.
        since: the first day that the report shows; None: the trailing ones, see `shown_days`.
        until: the last one; None: the last there is.
        data_docs: whether to write the Data Docs as well.
        now_ms: the current time, for missed schedules; None: not checked.

    Returns:
        Their places as `report` and `data_docs`; the shown `days`; the `totals` of all days;
        `notice`: a notice about the tables, or None.

    Raises:
        InputError: the pipeline has no tables yet, the last day is before the first one, the lake
            is no folder and none is given, or the folder cannot be written.
        RetryableError: the disk is full.
    """
    shown = Shown.of(spec, lake)
    store, days = shown.store, shown_days(shown.spec, shown.store, since, until)
    folder = _writable(folder, lake, spec)
    found, of_all_days = shown.findings(now_ms), totals(spec, store)
    report = build_report(
        replace(
            report_tables(shown, days),
            advice=kept_advice(spec, lake),
            before=document_in(folder / _SUMMARY),
        ),
        spec=spec,
        made_from=f"{store.root}, ledger version {store.version('runs')}",
        made_at=instant(datetime.now(UTC).replace(second=0, microsecond=0)),
        shown=ShownDays(days.since, days.until, of_all_days),
        notice=shown.notice,
        findings=found,
    )
    return {
        "report": str(_write_page(report, folder)),
        **(_write_data_docs(spec, lake, folder) if data_docs else {}),
        "days": days.named,
        "totals": of_all_days,
        "notice": shown.notice,
        "findings": [finding.to_json() for finding in found],
    }


def _writable(folder: Path | None, lake: Lake, spec: PipelineSpec) -> Path:
    """The folder to write into, created; by default `_reports` beside the pipeline's tables."""
    folder = folder or lake.reports(spec.pipeline)
    if folder is None:
        raise InputError("--output", "a lake that is no folder", "name a folder to write into")
    with _writing_into(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write_data_docs(spec: PipelineSpec, lake: Lake, folder: Path) -> dict[str, str]:
    """Write the Data Docs of the kept audits; their place as `data_docs`, if there are any."""
    validations = lake.validations(spec.pipeline)
    if validations is None or not validations.is_dir():
        return {}
    from strandline.quality.audit.data_docs import build_data_docs  # noqa: PLC0415 - takes seconds

    with _writing_into(folder):
        return {"data_docs": str(build_data_docs(validations, folder / "data_docs"))}


def _write_page(report: Page, folder: Path) -> Path:
    """Write the page in place of the previous one, and its summary beside it."""
    page = folder / "report.html"
    unfinished = page.with_name(f".{page.name}.unfinished")
    with _writing_into(folder):
        try:
            unfinished.write_text(report.html, encoding="utf-8", errors="backslashreplace")
            unfinished.replace(page)
            (folder / _SUMMARY).write_text(json.dumps(report.summary), encoding="utf-8")
        finally:
            unfinished.unlink(missing_ok=True)
    return page


@contextmanager
def _writing_into(folder: Path) -> Iterator[None]:
    """Turn a folder that cannot be written into an error that names it and --output."""
    try:
        yield
    except OSError as error:
        raise not_writable(f"--output {folder}", error) from None


def report_tables(shown: Shown, days: Days) -> ReportTables:
    """The tables of the report, read with delta-rs and counted while reading.

    Only files of the shown days are opened, and of older days that the channels' watermarks, and
    the usual numbers of records, depend on.
    """
    spec, store, state = shown.spec, shown.store, shown.state
    channels = channel_days(TimelineTable.open(store, days.rows_of("timeline")))
    latest, start_ms = shown.channels.channels, state.clock_start_ms
    if start_ms is not None:
        channels = with_emissions(channels, spec, start_ms)
        latest = with_emissions(latest, spec, start_ms)
    return ReportTables(
        completeness=_completeness(shown, days),
        quarantine=_by_reason(store, days),
        lateness=_lateness(store, days),
        channels=channels,
        runs=runs_for_report(state),
        latest=latest,
        processed_ms=state.frontier_ms,
        closed_ms=shown.closed_ms,
        watermark=shown.watermark,
        records=_records(store, days),
        values=frequent_values(store, days, spec),
    )


def _records(store: Store, days: Days) -> dict[date, int]:
    """The number of well-formed records of each shown arrival day, and of the compared ones."""
    compared = None if days.since is None else first_compared(days.since)
    rows = replace(days, since=compared).rows_of("timeline")
    found = rows_by_day(TimelineTable.open(store, rows))
    return {day: of_day.well_formed for day, of_day in found.items()}


def _completeness(shown: Shown, days: Days) -> pd.DataFrame:
    """The calendar; an earlier version has no number of slots for each row."""
    found = rows_on(shown.spec, shown.store, _SLOTS, days, part_ms=_PART_MS)
    rows = pd.DataFrame(columns=[*_SLOTS]) if found is None else found.to_pandas()
    late = LateOfNewer.of(shown, days)
    if late is not None:
        edges = [in_ms(rows[name]).to_numpy() for name in ("slot_start", "slot_end")]
        rows["missed_pairs"] += late.counts(*edges)
        rows["missed_at_least"] = late.are_least(*edges)
    return rows.assign(missed=rows["late"] + rows["missed_pairs"])


def _by_reason(store: Store, days: Days) -> pd.DataFrame:
    rows = read_days(store, "quarantine", ["reason", "quarantine_date"], days)
    if rows is None:
        return pd.DataFrame(columns=["reason", "day", "records"])
    counts: pd.DataFrame = sums_by([rows], ["reason", "quarantine_date"]).to_pandas()
    return counts.rename(columns={"quarantine_date": "day", ROWS: "records"})


def _lateness(store: Store, days: Days) -> pd.DataFrame:
    """The number of late records by lateness in whole minutes, rounded up."""
    rows = read_days(store, "quarantine", ["late_by_ms"], days, ds.field("reason") == "late")
    if rows is None:
        return pd.DataFrame(columns=["late_by_ms", "records"])
    steps = pc.divide(pc.add(rows["late_by_ms"], _LATENESS_STEP_MS - 1), _LATENESS_STEP_MS)
    minutes = pa.table({"late_by_ms": pc.multiply(steps, _LATENESS_STEP_MS)})
    counts: pd.DataFrame = sums_by([minutes], ["late_by_ms"]).to_pandas()
    return counts.rename(columns={ROWS: "records"})
