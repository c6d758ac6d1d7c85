"""A plan says in which form windows are rebuilt that do not just add up what they hold."""

from __future__ import annotations

from typing import Any

import pytest
from lakes import a_spec

from strandline.pipeline.notes import of_firings

HOUR = {"tumbling": "1h"}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, []),
        ({"trigger": {"event_time": {}, "purging": True}}, []),
        ({"trigger": {"continuous": "10m"}}, ["trigger: in sets", "up to 6 times before its end"]),
        ({"evictor": {"time": "5m"}}, ["evictor: in sets", "single records stay or go"]),
        (
            {"window": {"session": "5m"}, "trigger": {"event_time": {}, "purging": True}},
            ["trigger: in sets", "single records stay or go"],
        ),
    ],
)
def test_the_form_is_told_where_it_is_not_the_plain_one(fields: dict[str, Any], told: list[str]):
    notes = list(of_firings(a_spec(**({"window": HOUR, "firings": True} | fields))))
    assert len(notes) == bool(told)
    assert all(part in notes[0] for part in told)
