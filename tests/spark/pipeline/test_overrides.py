"""A run under rules of its own: its range goes by them, and nothing that later runs go by."""

from __future__ import annotations

from typing import Any

import pytest
from changes import of_days, some_days
from lakes import Line, a_spec, instant, land
from replayed import Rows, assert_told_by_replay, published, told_by_replay

from strandline.errors import InputError
from strandline.pipeline.publish.publish_prepared import publish_prepared
from strandline.pipeline.views.runs import run_of
from strandline.pipeline.views.status import status_of

pytestmark = pytest.mark.spark

DAYS = some_days(5)
ALONE = [
    *({**row, "source": "a"} for row in DAYS),
    {**DAYS[0], "source": "a", "device": None, "position": len(DAYS)},
]
ONE = {"source__channels": ["a"]}


def test_its_range_goes_by_its_rules_and_runs_after_it_by_the_files(spark, tmp_path):
    line = Line(spark, tmp_path, a_spec(**ONE))
    land(tmp_path, of_days(ALONE, 1, 2, 3))
    line.advance("4")
    before, plain = line.versions(), line.published()

    wider = line.of(a_spec(**ONE, watermark__bound="12h", allowed_lateness="6h"))
    asked = {"overrides": {"bound": "12h", "allowed_lateness": "6h"}, "reason": "a slow day"}
    looked = wider.backfill("1", "2", as_of="4", dry_run=True, **asked).preview["quarantine"]
    assert not any("null_key" in by_reason for by_reason in looked.values())  # it observes nothing
    outcome = wider.backfill("1", "2", as_of="4", prepare=True, **asked)
    with pytest.raises(InputError, match=r"rules have changed since; .* --bound 12h .*--prepare"):
        publish_prepared(line.spec, line.lake, outcome.run_id, spark)  # by the file it is another's
    assert publish_prepared(wider.spec, line.lake, outcome.run_id, spark).diff == outcome.diff
    assert any("of this run alone" in note for note in outcome.notes)
    assert outcome.diff["windows"]["update"] or outcome.diff["windows"]["insert"]
    assert line.versions()["timeline"] == before["timeline"]
    whole = windows_of(told_by_replay(wider.spec, of_days(ALONE, 1, 2, 3), "4"))
    assert windows_of(published(line)) == whole

    told = run_of(line.spec, line.lake, outcome.run_id)
    assert (told["overrides"], told["reason"]) == (asked["overrides"], "a slow day")
    status = status_of(line.spec, line.lake)
    assert status["spec_is_published"]  # the file is as it was
    by_rules = {one["spec_fingerprint"]: one["edited_since"] for one in status["rules"]}
    assert by_rules == {
        line.spec.spec_fingerprint: [],
        wider.spec.spec_fingerprint: ["watermark", "allowed_lateness"],
    }

    land(tmp_path, of_days(ALONE, 4), mode="append")
    line.advance("5")
    assert windows_of(published(line)) == whole
    line.backfill("1", "6", as_of="5")
    assert_told_by_replay(line, of_days(ALONE, 1, 2, 3, 4), "5")
    assert line.published() != plain


def windows_of(tables: Rows) -> list[tuple[Any, ...]]:
    """The windows that start on the first day."""
    return [row for row in tables["windows"] if instant("1") <= row[0][0] < instant("2")]
