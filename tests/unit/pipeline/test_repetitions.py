"""What a run repeats: the same request, by the same rules, for publishing and for its findings."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from lakes import a_record, a_spec, instant, land

from strandline.lake.landing.log import LandingLog
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.model.intervals import TimeRange
from strandline.pipeline.request.answered import request_fingerprint, run_repeated
from strandline.pipeline.request.opened import OpenedLog
from strandline.pipeline.request.request import Request


def fingerprint(**changed):
    return request_fingerprint(a_spec(**changed), Request("advance", to_ms=0), "table")


@pytest.mark.parametrize(
    ("changed", "is_repeated"),
    [
        ({"schedule": "0 7 * * *"}, True),
        ({"schedule": "0 * * * *"}, False),  # of a limit of 3 hours, where a day's is 26
        ({"schedule": "0 * * * *", "quality__fresh_within": "26h"}, False),
        ({"spark": {}}, True),
    ],
)
def test_a_schedule_counts_as_far_as_freshness_goes_by_it(changed, is_repeated):
    assert (fingerprint(**changed) == fingerprint()) is is_repeated


def test_a_limit_of_freshness_that_is_written_goes_by_no_schedule():
    written = {"quality__fresh_within": "26h"}
    assert fingerprint(**written) == fingerprint(schedule="0 * * * *", **written)


def test_a_run_is_computed_again_once_a_revert_has_moved_the_frontier_back(tmp_path):
    """Its own range is as it was published, yet not everything before its midnight is."""
    land(tmp_path, [a_record("2 10:00", "2 09:00")])
    spec, lake = a_spec(), Lake.at(str(tmp_path))
    log, ledger = LandingLog.of(lake, spec), Ledger(lake.pipeline("meter"))
    request = Request("advance", to_ms=instant("6"), now_ms=instant("20"))
    asked = request_fingerprint(spec, request, log.input_id)
    read = {"landing_version": log.version, "landing_id": log.table_id, "versions": {}}

    def publish(run_id: str, kind: str, start: str, end: str, known: str, **more) -> None:
        within = TimeRange(instant(start), instant(end))
        horizon = {"horizon_ms": instant(known), **read}
        step = Entry(run_id, 1, "published", kind, within, **horizon, **more)
        ledger.append(step, datetime.now(UTC))

    to_the_5th, to_the_6th = (
        {"frontier_ms": instant(day), "completes_ms": instant(day)} for day in "56"
    )
    publish("r-1", "advance", "1", "5", "5", **to_the_5th)
    publish("r-2", "backfill", "2", "3", "5", frontier_ms=instant("5"))
    publish("r-3", "advance", "4", "6", "6", request_fingerprint=asked, **to_the_6th)
    assert run_repeated(spec, OpenedLog.newest(lake, spec), request).run_id == "r-3"
    publish("r-4", "revert", "2", "3", "5", reverts="r-2", frontier_ms=instant("5"))
    assert ledger.state().frontier_ms == instant("5")
    assert run_repeated(spec, OpenedLog.newest(lake, spec), request) is None
