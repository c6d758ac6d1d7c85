"""Upkeep and erasure between runs: the runs after them publish what they would have published."""

from __future__ import annotations

import pytest
from lakes import Line, a_spec, a_week, instant, land

from strandline.lake.read import published_tables
from strandline.pipeline.manage.erase import erase
from strandline.pipeline.manage.maintain import maintain, upkeep_of
from strandline.pipeline.manage.retention import Retention
from strandline.pipeline.request.answered import run_repeated
from strandline.pipeline.request.opened import OpenedLog
from strandline.pipeline.request.request import Request

pytestmark = pytest.mark.spark
TO_THE_5TH = Request("advance", to_ms=instant("5 06:00"), now_ms=instant("20"))


def test_runs_go_on_after_upkeep_and_an_erasure(spark, tmp_path):
    land(tmp_path, a_week())
    line = Line(spark, tmp_path, a_spec())
    line.advance("3 06:00")
    last = line.run(TO_THE_5TH)
    published = line.published()
    assert any(
        table["days"] for table in upkeep_of(line.spec, line.lake, Retention())["tables"].values()
    )
    maintain(line.spec, line.lake, Retention())
    assert line.published() == published
    opened = OpenedLog.newest(line.lake, line.spec)
    assert run_repeated(line.spec, opened, TO_THE_5TH).run_id == last.run_id
    tables = published_tables(line.lake, "meter")
    for name in ("windows", "quarantine", "runs"):
        assert tables.frame(spark, name).count() == tables.dataset(name).count_rows()

    erased = erase(line.spec, line.lake, "device = 'd1'", reason="asked for")
    assert erased["rows"]["quarantine"]
    assert line.published() != published
    assert line.backfill("1", "5", as_of="5").status == "published"
    assert line.published()["windows"] == published["windows"]
    assert line.published()["completeness"] == published["completeness"]
