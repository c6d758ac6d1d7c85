"""The rows of two landing tables in one."""

from __future__ import annotations

import pytest
from joined import COGROUP, JOIN

from strandline.engine.records.side_by_side import side_by_side
from strandline.errors import InputError
from strandline.spec import parse_spec

pytestmark = pytest.mark.spark
SPEC = parse_spec(JOIN, origin="near.yaml")
SUMMED = parse_spec(COGROUP | {"aggregates": {"total": "sum(amount)"}}, origin="both.yaml")


def rows(session, left: str, right: str, spec=SPEC):
    sides = {"left": left, "right": right}
    return side_by_side({n: session.createDataFrame([], of) for n, of in sides.items()}, spec)


def test_columns_of_one_name_are_one_and_each_row_tells_its_source(session):
    found = rows(session, "amount long, left_alone string", "right_alone date, amount long")
    assert found.columns == ["amount", "left_alone", "input", "right_alone"]


def test_a_column_in_two_types_is_two_columns_and_whole_numbers_are_widened(session):
    found = rows(session, "amount long, n int, d date", "amount double, n long, d date")
    assert found.dtypes == [
        *(("amount", "bigint"), ("n", "bigint"), ("d", "date"), ("input", "string")),
        ("amount__double", "double"),
    ]
    # unless a landing table has that name itself
    found = rows(session, "amount long", "amount double, amount__double string")
    assert {*found.columns} == {"amount", "input", "amount__double", "amount__double_2"}


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        ("amount long", "amount string", r"right\.table: its column amount \(string\) differs"),
        ("amount int", "amount long", r"right\.table: its column amount \(bigint\) differs"),
        ("amount long", "Amount long", r"its column Amount \(bigint\) differs from amount"),
        ("INPUT long", "amount long", r"left\.table: its column INPUT has the name of a column"),
    ],
)
def test_columns_that_do_not_go_together_are_refused(session, left, right, told):
    with pytest.raises(InputError, match=told):
        rows(session, left, right, SUMMED)
