"""Settings of queries by their input: over few rows, over two sources, or any."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from no_session import NoSession

from strandline.lake.sessions.protocol import register
from strandline.lake.sessions.settings import FEW_ROWS, QUICKLY_PLANNED, for_input_of

BEFORE = dict.fromkeys(FEW_ROWS, "as it was")


class Conf(dict):
    """The configuration of a session."""

    set = dict.__setitem__


@dataclass(frozen=True, eq=False)
class Session:
    """In place of a `SparkSession`."""

    conf: Conf


@pytest.mark.parametrize(
    ("size_bytes", "two_sources", "own", "changed"),
    [
        (1_000, False, {}, FEW_ROWS),
        (1_000, True, {}, FEW_ROWS),
        (10**9, False, {}, {}),
        (10**9, True, {}, QUICKLY_PLANNED),
        (10**9, True, QUICKLY_PLANNED, {}),
    ],
)
def test_only_small_input_is_interpreted_and_only_two_sources_are_planned_quickly_at_any_size(
    size_bytes, two_sources, own, changed
):
    spark = Session(Conf(BEFORE))
    register(NoSession(spark=spark, for_few_rows=FEW_ROWS))
    with for_input_of(spark, size_bytes, own, two_sources=two_sources):
        assert spark.conf == BEFORE | changed
    assert spark.conf == BEFORE
