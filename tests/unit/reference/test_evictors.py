"""What evictors keep of a window, where Flink's own comparison decides about odd values."""

from __future__ import annotations

from math import inf, nan

import pytest

from strandline.reference.evictors import keep_by
from strandline.reference.records import Record
from strandline.spec.evictor import DeltaEvictor


def kept(*values: float) -> str:
    """What a delta evictor of five keeps of records with such values."""
    keep = keep_by(DeltaEvictor(delta=5, of="value"))
    records = [
        Record(number, number, str(number), evictor_value=value)
        for number, value in enumerate(values)
    ]
    return " ".join(str(record.evictor_value) for record in keep(records))


def test_a_delta_evictor_lets_go_of_what_is_at_least_so_far_away():
    assert kept(1.0, 9.0, 6.0) == "9.0 6.0"
    assert kept(inf, 1.0, 2.0) == "1.0 2.0"


@pytest.mark.parametrize("values", [(1.0, 2.0, nan), (nan, 1.0, 2.0), (inf, inf), (-inf, -inf)])
def test_what_is_no_number_is_no_distance_away_and_stays(values):
    assert kept(*values) == " ".join(map(str, values))
