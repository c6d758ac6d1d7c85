"""The streams of the laws on Spark: each choice of a pipeline meets each other one.

A law names the choices that its equation may depend on (`rows`), and gets for each row a stream
with these; everything else is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from drawn import ROUNDS, drawn, in_words
from happenings import richness
from hard_streams import TWISTS, over_midnight
from hypothesis import strategies as st
from pairs import pairwise
from spec_strategies import (
    CHANNELS_GIVEN,
    EMISSIONS,
    IDLENESS,
    LATENESS_MS,
    STRATEGIES,
    cumulative_windows,
    durations,
    generators_of,
    session_windows,
    sliding_windows,
    watermarks_of,
    windows,
)
from strategies import AFTER_LAST_MS, BASES_MS, Stream, streams

WINDOWS = {
    "tumbling": windows(),
    "sliding": sliding_windows(),
    "cumulative": cumulative_windows(),
    "session": durations(st.integers(1, 30)).map(lambda gap: {"session": gap}),
    "session of own gaps": st.just({"session": "gap_ms"}),
    "session of any gaps": session_windows(),
}
ON_A_GRID = ("tumbling", "sliding", "cumulative")
SESSIONS = ("session", "session of own gaps")
OVER_MIDNIGHT = "midnight comes as half of the records have arrived"
CHOICES: dict[str, tuple[Any, ...]] = {
    "window": (*ON_A_GRID, "session of any gaps"),
    "strategy": STRATEGIES,
    "emit": EMISSIONS,
    "idleness": (None, *IDLENESS),
    "combine": ("valve", "splits"),
    "channels": CHANNELS_GIVEN,
    "sequence": (None, "seq"),
    "lateness_ms": LATENESS_MS,
    "base_ms": (*BASES_MS, OVER_MIDNIGHT),
    "end_of_input": (False, True),
    "after_last_ms": AFTER_LAST_MS,
    "twist": tuple(TWISTS),
}
"""What a pipeline and its run may be; the values that a row does not name are drawn."""
RECORDS = (15, 40, 80)
"""Of a stream. Spark takes as long for a few as for many; chance wants many."""
RECORDS_IN_SESSIONS = (15, 30, 40)
"""Their units meet each other, so many take longer."""
Row = Mapping[str, Any]


def rows(*names: str, **others: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The rows of a law: any two values of two choices meet, in every round.

    Args:
        names: of CHOICES, with all of their values.
        others: choices with values of the law's own.
    """
    return ROUNDS * pairwise({name: CHOICES[name] for name in names} | others)


def streams_of(row: Row) -> st.SearchStrategy[Stream]:
    """Streams with the choices of a row."""

    def chosen(name: str) -> st.SearchStrategy[Any]:
        return st.just(row[name]) if name in row else st.sampled_from(CHOICES[name])

    base_ms = chosen("base_ms").map(lambda base: 0 if base == OVER_MIDNIGHT else base)
    plain = streams(
        length=st.sampled_from(
            RECORDS_IN_SESSIONS if "session" in row.get("window", "") else RECORDS
        ),
        base_ms=base_ms,
        after_last_ms=chosen("after_last_ms"),
        end_of_input=chosen("end_of_input"),
        channels=chosen("channels"),
        sequence=chosen("sequence"),
        lateness_ms=chosen("lateness_ms"),
        window=chosen("window").flatmap(WINDOWS.__getitem__),
        watermark=watermarks_of(
            chosen("strategy").flatmap(generators_of),
            chosen("emit"),
            chosen("idleness"),
            chosen("combine"),
        ),
    )
    twisted = st.tuples(plain, chosen("twist")).flatmap(
        lambda pair: TWISTS[pair[1]](pair[0].records).map(
            lambda records: replace(pair[0], records=records)
        )
    )
    return twisted.map(over_midnight) if row.get("base_ms") == OVER_MIDNIGHT else twisted


def drawn_stream(row: Row, number: int) -> Stream:
    """The stream of a row; the number tells rounds apart."""
    return drawn(streams_of(row), f"{number} {in_words(row)}", best=richness)


def drawn_streams(law_rows: list[dict[str, Any]]) -> list[Stream]:
    """A stream for each row of a law."""
    return [drawn_stream(row, number) for number, row in enumerate(law_rows)]
