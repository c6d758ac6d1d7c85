"""The laws of a run: whatever was run before, in whatever order, the tables say what Flink would."""

from __future__ import annotations

import pytest
from lakes import Line, a_spec, a_week, land

pytestmark = pytest.mark.spark


def test_try(spark, tmp_path):
    import time
    land(tmp_path, a_week())
    line = Line(spark, tmp_path, a_spec())
    for d in "23":
        t = time.time(); o = line.advance(d); print(d, time.time() - t, o.to_json())
    for name, rows in line.published().items():
        print(name, len(rows), rows[:2])
