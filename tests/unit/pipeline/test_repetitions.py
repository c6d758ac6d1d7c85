"""What a run repeats: the same request, by the same rules, for publishing and for its findings."""

from __future__ import annotations

import pytest
from lakes import a_spec

from strandline.pipeline.request.repeated import request_fingerprint
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
