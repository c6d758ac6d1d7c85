"""What makes a run a small one is what it reads, not how much has landed in all."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest.mock import patch

import pytest
from lakes import a_spec, a_week, instant, land

from strandline.lake.landing.log import LandingLog
from strandline.lake.landing.small_runs import is_small
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.store.lake import Lake
from strandline.model.intervals import TimeRange

DAYS = 4
"""Of the landing table: so many are read before a JVM has warmed up."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight days have landed."""
    folder = tmp_path_factory.mktemp("lake")
    land(folder, a_week(days=8))
    return folder


def asked(folder, spec, within=None) -> bool:
    lake = Lake.at(str(folder))
    log = LandingLog.of(lake, spec)
    with patch(
        "strandline.lake.landing.small_runs._SMALL_BYTES", DAYS * max(log.files["size_bytes"])
    ):
        return is_small(spec, Ledger(lake.pipeline(spec.pipeline)).state(), log, within)


def published(folder, spec, up_to: str) -> None:
    entry = Entry(
        run_id="r-1",
        attempt=1,
        step="published",
        kind="advance",
        frontier_ms=instant(up_to),
        timeline_fingerprint=spec.timeline_fingerprint,
    )
    Ledger(Lake.at(str(folder)).pipeline(spec.pipeline)).append(entry, datetime.now(UTC))


def test_a_first_run_over_much_is_not_small_and_one_more_day_after_it_is(folder):
    spec = a_spec()
    assert not asked(folder, spec)
    published(folder, spec, "8")
    assert asked(folder, spec)
    assert asked(folder, spec, TimeRange(instant("8"), instant("9")))
    assert not asked(folder, spec, TimeRange(instant("1"), instant("8")))


def test_under_other_rules_all_is_observed_again(folder):
    assert not asked(folder, a_spec(watermark__bound="1h"))


def test_where_no_partition_tells_the_days_all_of_it_counts(folder):
    assert not asked(folder, a_spec(source__arrival_date=None))
