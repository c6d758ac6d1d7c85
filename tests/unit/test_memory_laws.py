"""The law of the world and the law of the rules: nothing that was published is forgotten."""

from __future__ import annotations

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import Life, Published, told

from strandline.model.intervals import DAY_MS, TimeRange, midnight_of
from strandline.reference import Record
from strandline.spec import PipelineSpec, parse_spec

FIRST = date(2024, 3, 1)
START_MS = midnight_of(FIRST)
HOUR_MS = 3_600_000
DAYS = 6
SOME = settings(max_examples=min(max(settings.default.max_examples, 100), 1500))

WINDOWS = st.sampled_from(
    [
        {"tumbling": "6h", "offset": "1h"},
        {"tumbling": "1h"},
        {"sliding": "9h", "every": "3h"},
        {"sliding": "3h", "every": "4h"},
        {"cumulative": "12h", "step": "4h"},
        {"session": "5h"},
        {"session": "gap_ms"},
    ]
)
WATERMARKS = st.sampled_from(
    [
        {"strategy": "bounded_out_of_orderness", "bound": "2h", "emit": {"every": "20m"}},
        {"strategy": "bounded_out_of_orderness", "bound": "1d", "emit": {"every": "7h"}},
        {"strategy": "ascending", "emit": "per_record"},
        {"strategy": "bounded_out_of_orderness", "bound": "5h", "emit": "per_record"},
    ]
)
IDLE = {"strategy": "ascending", "emit": {"every": "1h"}, "idleness": "8h"}
CHANNELS = st.sampled_from([["a", "b"], "discovered", ["b", "a", "c"]])


@st.composite
def pipelines(draw: st.DrawFn) -> PipelineSpec:
    channels = draw(CHANNELS)
    return parse_spec(
        {
            "pipeline": "life",
            "source": {
                **{"table": "t", "arrival_time": "arrived", "event_time": "happened"},
                **{"channel": "channel", "channels": channels, "key": ["k"]},
                "deduplicate": draw(
                    st.sampled_from(
                        [None] * 3 + [{"columns": ["value"], "within": "30h of arrival"}]
                    )
                ),
            },
            "watermark": draw(WATERMARKS | st.just(IDLE)),
            "window": draw(WINDOWS),
            "allowed_lateness": draw(st.sampled_from(["0h", "4h", "30h"])),
            "quality": {"slot": "6h"},
        },
        origin="life.yaml",
    )


@st.composite
def arrivals(draw: st.DrawFn) -> list[Record]:
    """Records of six days: mostly of the hours before they arrive, some of days before."""
    codes = draw(st.lists(st.integers(0, 2**30), min_size=8, max_size=40))
    records = []
    for number, code in enumerate(codes):
        rest, minute = divmod(code, DAYS * 24 * 12)
        rest, delay = divmod(rest, 16)
        rest, channel = divmod(rest, 5)
        rest, key = divmod(rest, 2)
        rest, gap = divmod(rest, 6)
        arrival_ms = START_MS + minute * 300_000
        hours = [0, 0, 0, 0, 1, 1, 2, 3, 5, 7, 9, 20, 30, 50, 80, -2][delay]
        records.append(
            Record(
                arrival_ms=arrival_ms,
                ts_ms=arrival_ms - hours * HOUR_MS - number * 1_000,
                record_id=f"{number:03d}",
                channel="aaabb"[channel],
                key=("xy"[key],),
                gap_ms=(1 + 2 * gap) * HOUR_MS,
                payload={"value": rest % 7, "id": number},
            )
        )
    return records


def midnight(day: int) -> int:
    return START_MS + day * DAY_MS


@st.composite
def stories(draw: st.DrawFn) -> list[tuple]:
    """What happens, in its order: landings whole, late, in parts; runs that end or die."""
    wait = {day: draw(st.sampled_from([0, 0, 0, 1, 2, 4])) for day in range(DAYS)}
    grows = {day: draw(st.sampled_from([0, 0, 0, 1, 3])) for day in range(DAYS)}
    story: list[tuple] = []
    for now in range(1, DAYS + 1):
        story += [("land", day, "most") for day in range(DAYS) if day + 1 + wait[day] == now]
        story += [
            ("land", day, "rest") for day in range(DAYS) if day + 1 + wait[day] + grows[day] == now
        ]
        what = draw(
            st.sampled_from(
                ["advance"] * 5
                + ["skip", "before its days count", "rejected", "again", "by hand", "all by hand"]
            )
        )
        story.append((what, now, draw(st.integers(0, 20)), draw(st.integers(1, 20))))
    return story


def live(life: Life, story: list[tuple], records: list[Record]) -> None:
    """Live a story; after each run that ends the tables are those of one run over everything."""
    for what, *more in story:
        if what == "land":
            day, part = more
            of_day = [r for r in records if (r.arrival_ms - START_MS) // DAY_MS == day]
            life.land(of_day[::2] if part == "most" else of_day)
            continue
        now, start, width = more
        if what in {"by hand", "all by hand"}:
            begin_ms = START_MS + (start - 4) * 7 * HOUR_MS
            within = TimeRange(begin_ms, begin_ms + width * 7 * HOUR_MS)
            if what == "all by hand":
                within = TimeRange(midnight(-9), midnight(DAYS + 9))
            life.backfill(within, midnight(now))
        elif what in {"before its days count", "rejected"}:
            life.advance(midnight(now), dies=what)
        elif what != "skip":
            life.advance(midnight(now))
            if what == "again":
                life.advance(midnight(now))
            assert_as_in_one_go(life, midnight(now))


def assert_as_in_one_go(life: Life, horizon_ms: int) -> None:
    assert_same(life.published, told(life.spec, life.records, life.axis.start_ms, horizon_ms))


def assert_same(found: Published, expected: Published) -> None:
    for part in ("windows", "late", "slots"):
        assert getattr(found, part) == getattr(expected, part), part


@SOME
@given(pipelines(), arrivals(), stories())
def test_whatever_lands_when_and_whichever_runs_die_the_next_leaves_what_one_go_leaves(
    spec, records, story
):
    life = Life(spec)
    live(life, story, records)
    life.land(records)
    life.advance(midnight(DAYS + 1))
    assert_as_in_one_go(life, midnight(DAYS + 1))
