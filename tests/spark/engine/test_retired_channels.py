"""A channel that is retired: what Spark answers, where its records go, and what a run builds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from answers import agree, reference
from changes import of_days, some_days
from drawn import drawn, in_words
from engine_under_test import Engine, each
from happenings import richness
from hypothesis import strategies as st
from lakes import Line, a_spec, land
from law_streams import WINDOWS
from pairs import pairwise
from replayed import assert_books_balance
from spec_strategies import EMISSIONS, generators_of, watermarks_of
from strategies import BY_RECORDS, retired_streams

from strandline.pipeline.views.status import status_of

pytestmark = [pytest.mark.spark, pytest.mark.hypothesis]

ROWS = pairwise(
    {
        "window": ("tumbling", "sliding", "session of any gaps"),
        "strategy": ("bounded_out_of_orderness", "punctuated", "expression"),
        "emit": ("per_record", "7ms", "50ms"),
    }
)


def stream_of(number: int):
    """A stream of a row, the richest of some."""
    row = ROWS[number]
    assert row["strategy"] in BY_RECORDS
    assert row["emit"] in EMISSIONS
    watermark = watermarks_of(
        generators_of(row["strategy"]),
        st.just(row["emit"]),
        st.none(),
        st.sampled_from(["valve", "splits"]),
    )
    some = retired_streams(
        window=WINDOWS[row["window"]], watermark=watermark, length=st.sampled_from((15, 40))
    )
    return drawn(some, f"retired {number} {in_words(row)}", best=richness)


def test_the_engine_answers_as_the_reference_does(session):
    streams = [stream_of(number) for number in range(len(ROWS))]
    for stream, found in each(streams, lambda stream: Engine.on(session, stream).answer()):
        agree(stream, found, reference(stream))


def test_what_comes_through_it_later_is_undeclared_and_decides_nothing(session):
    stream = replace(stream_of(0), end_of_input=False)
    (gone, retired_ms), *_ = stream.spec.source.retired.items()
    other = next(row for row in stream.rows())
    late = [
        {**other, "channel": gone, "id": 900 + ahead, "arrival_ms": retired_ms + ahead}
        for ahead in (0, 1)
    ]
    later = replace(stream, horizon_ms=max(stream.horizon_ms, retired_ms + 2))
    engine = Engine.on(session, later, beside=late)
    agree(later, engine.answer(), reference(later))
    assert engine.malformed() == {900: "undeclared_channel", 901: "undeclared_channel"}


def test_windows_that_a_dead_channel_has_held_open_are_built_by_the_next_run(spark, tmp_path):
    """It speaks on the first day alone; nothing says so until somebody retires it."""
    rows = [row for row in some_days(4) if row["source"] == "a" or row["arrived_on"].day == 1]
    rows.append({**rows[-1], "source": "b", "position": 900})
    line = Line(spark, tmp_path, a_spec())
    land(tmp_path, of_days(rows, 1, 2, 3))
    line.advance("4")
    built = len(line.rows("windows"))
    assert status_of(line.spec, line.lake)["watermark"]["held_by"] == "b"

    line = line.of(a_spec(source__retired={"b": "2024-03-02"}))
    land(tmp_path, of_days(rows, 4), mode="append")
    line.advance("5")
    assert len(line.rows("windows")) > built
    told = status_of(line.spec, line.lake)
    assert (told["watermark"]["held_by"], told["open_behind_watermark"]) == ("a", 0)
    assert [row["reason"] for row in line.rows("quarantine") if row["position"] == 900] == [
        "undeclared_channel"
    ]
    assert_books_balance(line)

    # to rebuild all of it by these rules says the same of every slot
    before = line.rows("completeness")
    line.backfill("1", "6", as_of="5")
    states = [
        [(row["slot_start"], row["state"]) for row in slots]
        for slots in (before, line.rows("completeness"))
    ]
    assert states[0] == states[1]
