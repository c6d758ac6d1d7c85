"""The rows of two landing tables in one."""

from __future__ import annotations

import pytest
from joined import JOIN

from strandline.engine.records.side_by_side import side_by_side
from strandline.errors import InputError
from strandline.spec import parse_spec

pytestmark = pytest.mark.spark
SPEC = parse_spec(JOIN, origin="near.yaml")


def rows(session, left: str, right: str):
    sides = {"left": left, "right": right}
    return side_by_side({n: session.createDataFrame([], of) for n, of in sides.items()}, SPEC)


def test_columns_of_one_name_are_one_and_each_row_tells_its_source(session):
    found = rows(session, "amount long, left_alone string", "right_alone date, amount long")
    assert found.columns == ["amount", "left_alone", "input", "right_alone"]


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        ("amount long", "amount string", r"right\.table: its column amount \(string\) stands"),
        ("amount long", "Amount long", r"its column Amount \(bigint\) stands beside amount"),
        ("INPUT long", "amount long", r"left\.table: its column INPUT has the name of ours"),
    ],
)
def test_columns_that_do_not_go_together_are_refused(session, left, right, told):
    with pytest.raises(InputError, match=told):
        rows(session, left, right)
