"""The report's volume is what the findings are about: records, without malformed rows."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
from deltalake import write_deltalake
from many_days import a_lake_of, day
from meter import HALF_DAYS as SPEC

from strandline.lake.timeline.rows import SCHEMA as TIMELINE
from strandline.pipeline.views.report import write_report


def test_a_day_whose_rows_are_mostly_malformed_is_unusual_on_the_page_too(tmp_path):
    """A plot of all rows had it as usual, beside the finding that it has too few records."""
    lake = a_lake_of(2, SPEC, tmp_path / "lake")
    mondays = [day(0) + timedelta(weeks=week) for week in range(9)]
    rows = [
        {"arrival_date": monday, "kind": "day", "event_date": monday, "records": 100}
        for monday in mondays
    ]
    rows[-1]["records"] = 15
    rows += [
        {"arrival_date": mondays[-1], "kind": "malformed", "reason": "null_key", "records": 85}
    ]
    timeline = pa.Table.from_pylist(rows, TIMELINE)
    write_deltalake(lake.pipeline("meter").uri("timeline"), timeline, mode="append")
    unusual = f"Outside what is usual: {mondays[-1]}: 15 records, usually 100 (70 to 130)"
    for since in (day(0), mondays[-1]):  # also where the days that make it unusual are not shown
        write_report(SPEC, lake, tmp_path / "report", since=since, until=mondays[-1])
        assert unusual in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
