"""A plan says in which form the windows of a pipeline are computed, where sets alone do not do."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from lakes import a_spec

from strandline.pipeline.notes.notes import of_calendar
from strandline.pipeline.notes.of_form import of_form

REPLAY, EARLY = "replayed in workers", "a window of a key fires up to 6 times before its end"
WORKERS, HISTORY = "per group in workers", "whole history"


@pytest.mark.parametrize(
    ("fields", "forms"),
    [
        ({}, []),
        ({"trigger": {"event_time": {}, "purging": True}}, [REPLAY]),
        ({"trigger": {"continuous": "10m"}}, [REPLAY, EARLY]),
        ({"trigger": {"count": 3}}, [REPLAY]),
        ({"evictor": {"time": "5m"}}, [REPLAY]),
        ({"window": {"session": "1h"}, "trigger": {"continuous": "10m"}}, [REPLAY]),
        ({"window": {"global": {}}, "trigger": {"continuous": "1h"}}, [HISTORY, REPLAY]),
        ({"process": "a:b", "returns": {"n": "int"}}, [WORKERS, REPLAY]),
        ({"window": {"count": 3}}, [HISTORY, REPLAY]),
        ({"window": {"global": {}}, "trigger": {"end_of_input": {}}}, [HISTORY]),
    ],
)
def test_a_plan_names_the_form_of_what_sets_alone_do_not_tell(fields, forms):
    lines = list(of_form(a_spec(firings=True, **fields)))
    assert [re.split(r"[.:]", line)[1].strip() for line in lines] == forms


def test_a_run_says_how_many_records_no_firing_told_of():
    (note,) = of_calendar(pd.DataFrame({"unfired": [2, 0, 1]}), 0)
    assert note.startswith("unfired: 3 records came after the last firing of their window")
    assert list(of_calendar(pd.DataFrame({"unfired": [0]}), 0)) == []
    assert list(of_calendar(pd.DataFrame({"late": [1]}), 0)) == []
