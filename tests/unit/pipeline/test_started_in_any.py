"""The condition on rows that start in any of many ranges."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds

from strandline.model.intervals import TimeRange
from strandline.pipeline.plan.late_records import started_in_any


def test_twenty_thousand_instants_are_one_condition_that_arrow_can_evaluate():
    """Each was one level of a tree, of which the process died without a word."""
    ranges = [TimeRange(10 * n, 10 * n + 1) for n in range(20_000)] + [TimeRange(199_991, 199_999)]
    instants = [0, 1, 2, 9, 10, 199_990, 199_991, 199_992, 200_000]
    starts = pa.array([1000 * ms for ms in instants], pa.timestamp("us", "UTC"))
    rows = ds.dataset(pa.table({"slot_start": starts, "ms": instants}))
    found = rows.to_table(filter=started_in_any("slot_start", ranges))["ms"].to_pylist()
    assert found == [ms for ms in instants if any(ms in one for one in ranges)]


def test_in_no_range_nothing_starts():
    rows = ds.dataset(pa.table({"slot_start": pa.array([0], pa.timestamp("us", "UTC"))}))
    assert rows.to_table(filter=started_in_any("slot_start", [])).num_rows == 0
