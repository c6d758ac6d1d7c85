"""A condition on a row is taken to pieces before any of it reaches a query."""

from __future__ import annotations

import pytest

from strandline.errors import InputError
from strandline.lake.upkeep.row_condition import condition_on_row


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("device = 'd-1'", "device = 'd-1'"),
        ("device='it''s' OR \"Odd Name\" > 3", "device = 'it''s' OR \"Odd Name\" > 3"),
        ("lower(name) LIKE 'zo%' AND NOT amount IN (1, -2)", None),
        ("arrived_at < TIMESTAMP '2024-03-01'", "arrived_at < CAST('2024-03-01' AS TIMESTAMP)"),
        ("TRY_CAST(key AS INT) = 1", "TRY_CAST(key AS INT) = 1"),
        ("device IS NULL", "device IS NULL"),
        ("date_trunc('day', arrived_at) = DATE '2024-03-01'", None),
        ("starts_with(upper(device), 'D') AND contains(device, '1')", None),
        ("length(trim(device)) + abs(amount) > coalesce(position, 0) % 7", None),
        ("amount BETWEEN 1 AND 2", "amount BETWEEN 1 AND 2"),
        ("device = 'a\\'", "device = 'a\\'"),
        ("`Odd Name` = 1 AND `a\"b` = '`'", '"Odd Name" = 1 AND "a""b" = \'`\''),
    ],
)
def test_a_condition_is_rewritten(typed, asked):
    written = condition_on_row(typed)
    assert asked is None or written == asked
    assert condition_on_row(written) == written


@pytest.mark.parametrize(
    "typed",
    [
        "key = E'\\'' OR id IN (SELECT id FROM rows) --'",
        "id IN (SELECT id FROM rows)",
        "id IN (VALUES (1))",
        "EXISTS (SELECT 1)",
        "id = 1; DROP TABLE rows",
        "id = 1) OR (1 = 1",
        "id = 'open",
        "version() = id",
        "id = $1",
        "id = @one",
        "CASE WHEN id = 1 THEN true END",
        "CAST(id AS STRUCT<a INT>) = 1",
        "1 = 1",
        "true",
        "",
        " -- nothing",
        "id = 1 -- or any other",
        "id /* a */ = 1",
        "(" * 2_000 + "id = 1" + ")" * 2_000,
        "id = 1 OR " * 3_000 + "id = 2",
    ],
)
def test_all_else_is_refused_before_it_reaches_a_query(typed):
    with pytest.raises(InputError, match="no condition on a row") as caught:
        condition_on_row(typed)
    assert caught.value.place == "--where"
