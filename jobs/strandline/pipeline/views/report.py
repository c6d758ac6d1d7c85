"""report: the page of a pipeline, from small reads of its tables; no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from strandline.errors import InputError
from strandline.lake.store import Lake, Store, dataset_of
from strandline.lake.timeline import channel_days, read_source
from strandline.lake.timeline_rows import TimelineTable
from strandline.quality.report.page import ReportTables, build_report
from strandline.spec import PipelineSpec

_LATENESS_STEP_MS = 60_000
_COLUMNS = {
    "completeness": (
        "slot_start", "slot_end", "state", "gap", "fired_at", "closed_at",
        "on_time", "late_accepted", "late", "no_window", "missed_pairs",
    ),
}  # fmt: skip


def write_report(spec: PipelineSpec, lake: Lake, folder: Path | None = None) -> dict[str, str]:
    """Write the report and the Data Docs of a pipeline; where they lie, by name.

    Args:
        spec: the pipeline.
        lake: where its tables lie.
        folder: where to write; None: `_reports` beside the tables, where that is a folder.

    Raises:
        InputError: the pipeline has no tables yet, or the lake is no folder and none is given.
    """
    store = lake.pipeline(spec.pipeline)
    if store.table("runs") is None:
        raise InputError(
            spec.pipeline, "has no runs yet", "run strandline backfill or advance first"
        )
    if folder is None:
        if lake.folder is None:
            raise InputError("--output", "a lake that is no folder", "name a folder to write into")
        folder = lake.folder / spec.pipeline / "_reports"
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    validations = (lake.folder or folder) / spec.pipeline / "_reports" / "gx"
    if validations.is_dir():
        from strandline.quality.audit.data_docs import build_data_docs  # noqa: PLC0415 - takes seconds

        written["data_docs"] = str(build_data_docs(validations, folder / "data_docs"))
    made_from = f"{store.root}, ledger version {store.version('runs')}"
    page = folder / "report.html"
    page.write_text(
        build_report(report_tables(store), spec=spec, made_from=made_from), encoding="utf-8"
    )
    return {"report": str(page), **written}


def report_tables(store: Store) -> ReportTables:
    """What the report shows, read with delta-rs and counted as it is read."""
    timeline = TimelineTable.open(store)
    return ReportTables(
        completeness=_read(store, "completeness", _COLUMNS["completeness"]),
        quarantine=_by_reason(store),
        lateness=_lateness(store),
        channels=channel_days(timeline),
        runs=_read(store, "runs", None),
        source=read_source(timeline),
    )


def _read(store: Store, name: str, columns: Sequence[str] | None) -> pd.DataFrame:
    table = store.table(name)
    if table is None:
        return pd.DataFrame(columns=list(columns or []))
    wanted = list(columns) if columns else None
    rows: pd.DataFrame = dataset_of(table).to_table(columns=wanted).to_pandas()
    return rows


def _by_reason(store: Store) -> pd.DataFrame:
    table = store.table("quarantine")
    if table is None:
        return pd.DataFrame(columns=["reason", "day", "records"])
    rows = dataset_of(table).to_table(columns=["reason", "quarantine_date"])
    groups = pa.TableGroupBy(rows, ["reason", "quarantine_date"])
    counts: pd.DataFrame = groups.aggregate([([], "count_all")]).to_pandas()
    return counts.rename(columns={"quarantine_date": "day", "count_all": "records"})


def _lateness(store: Store) -> pd.DataFrame:
    """How many records were how late, by whole minutes, rounded up."""
    table = store.table("quarantine")
    if table is None:
        return pd.DataFrame(columns=["late_by_ms", "records"])
    late = ds.field("reason") == "late"
    rows = dataset_of(table).to_table(columns=["late_by_ms"], filter=late)
    steps = pc.divide(pc.add(rows["late_by_ms"], _LATENESS_STEP_MS - 1), _LATENESS_STEP_MS)
    minutes = pa.table({"late_by_ms": pc.multiply(steps, _LATENESS_STEP_MS)})
    counts: pd.DataFrame = (
        pa.TableGroupBy(minutes, "late_by_ms").aggregate([([], "count_all")]).to_pandas()
    )
    return counts.rename(columns={"count_all": "records"})
