"""Streams written by hand: what is drawn too seldom, and what once went wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from strategies import Stream

from strandline.model.intervals import DAY_MS
from strandline.model.lateness import MAX_WATERMARK
from strandline.reference.records import Record
from strandline.spec import parse_spec


def a_stream(
    *records: tuple[int, int, str] | tuple[int, int, str, int],
    horizon_ms: int = 1_000,
    end_of_input: bool = False,
    **changed: Any,
) -> Stream:
    """Records (arrival, event time, channel, sequence) of one key, in windows of 10 ms."""
    content = {
        "pipeline": "edge",
        "source": {
            "table": "landing/stream",
            "arrival_time": "timestamp_millis(arrival_ms)",
            "event_time": "timestamp_millis(ts_ms)",
            "channel": "channel",
            "channels": changed.pop("channels", "discovered"),
            "key": {"k": "k"},
            "sequence": changed.pop("sequence", None),
        },
        "watermark": {"strategy": "ascending", "emit": changed.pop("emit", "per_record")},
        "window": {"tumbling": "10ms"},
        **changed,
    }
    if content["source"]["channels"] is None:
        content["source"]["channel"] = None
    return Stream(
        spec=parse_spec(content, origin="edge.yaml"),
        records=tuple(
            Record(
                arrival_ms=arrival_ms,
                ts_ms=ts_ms,
                record_id=f"{number:04d}",
                channel=channel,
                key=("x",),
                sequence=sequence[0] if sequence else None,
                payload={"id": number, "value": 10**number},
            )
            for number, (arrival_ms, ts_ms, channel, *sequence) in enumerate(records)
        ),
        start_ms=0,
        horizon_ms=horizon_ms,
        end_of_input=end_of_input,
    )


def bounded(bound_ms: int) -> dict[str, str]:
    return {"strategy": "bounded_out_of_orderness", "emit": "per_record", "bound": f"{bound_ms}ms"}


FOUND_MS = 1_356_998_400_000
"""When the stream begins of which a law found that its sessions reported a wrong watermark."""
_FOUND = (
    *((0, -19, "b", "x", 1, None), (0, -36, "b", "y", 2, None), (0, -11, "b", "x", 1, None)),
    *((60, 18, "b", "x", 1, None), (62, 73, "b", "x", 1, None), (62, 42, "c", "x", 2, 45)),
    *((62, 20, "b", "x", 1, 20), (62, 76, "b", "y", 1, 71), (62, 46, "b", "y", 1, None)),
    *((62, 77, "c", "y", 3, None), (62, 57, "c", "x", 3, None), (122, 109, "b", "x", 1, None)),
    *((123, 91, "b", "x", 1, None), (125, 125, "b", "x", 1, None), (125, 103, "b", "x", 1, None)),
    *((134, 149, "c", "x", 1, None), (134, 148, "c", "y", 3, 151), (134, 133, "c", "y", 3, None)),
    *((134, 99, "c", "y", 1, None), (143, 146, "b", "x", 1, None)),
)
"""Its records: arrival, event time, channel, key, sequence, candidate; times from its beginning."""


def the_channels_end_one_by_one(window: dict[str, str]) -> Stream:
    """The stream that was found: b ends, a, which never spoke, and what c has said counts."""
    plain = a_stream(
        *(
            (FOUND_MS + arrival_ms, FOUND_MS + ts_ms, channel, sequence)
            for arrival_ms, ts_ms, channel, _, sequence, _ in _FOUND
        ),
        channels=["b", "a", "c"],
        sequence="seq",
        watermark={
            **{"strategy": "expression", "candidate": "timestamp_millis(candidate_ms)"},
            "emit": "per_record",
        },
        window=window,
        allowed_lateness=f"{2**60}ms",
        horizon_ms=FOUND_MS + 144,
        end_of_input=True,
    )
    records = tuple(
        replace(
            record,
            key=(key,),
            candidate_ms=None if candidate_ms is None else FOUND_MS + candidate_ms,
            payload={"id": record.payload["id"], "value": -9},
        )
        for record, (*_, key, _, candidate_ms) in zip(plain.records, _FOUND, strict=True)
    )
    return replace(plain, records=records, start_ms=FOUND_MS)


AS_TICKS = {"every": "7ms"}
EDGES = {
    "nothing has landed, channels discovered": a_stream(),
    "nothing has landed and the input has ended, channels discovered": a_stream(end_of_input=True),
    "nothing has landed, channels declared": a_stream(channels=["a", "b"]),
    "nothing has landed and the input has ended, one channel": a_stream(
        channels=None, end_of_input=True
    ),
    "everything lies behind the horizon": a_stream((50, 50, "a"), horizon_ms=50),
    "two newcomers of one instant, the one of the larger name first in event time": a_stream(
        *((1, 9, "a"), (1, 2, "b"), (2, 25, "a"), (2, 47, "b")),
        *((3, 60, "a"), (3, 58, "b"), (20, 8, "a")),
        allowed_lateness="1h",
    ),
    "two newcomers of one arrival, in order of sequence, on ticks": a_stream(
        *((1, 3, "a", 2), (1, 9, "b", 1), (2, 25, "a", 1), (2, 47, "b", 1), (9, 60, "a", 1)),
        *((10, 80, "b", 1),),
        sequence="seq",
        emit=AS_TICKS,
    ),
    "a newcomer arrives on a tick at which others speak one by one": a_stream(
        *((1, 5, "a"), (2, 6, "b"), (8, 30, "a"), (9, 45, "b"), (14, 3, "c"), (30, 90, "c")),
        emit=AS_TICKS,
        allowed_lateness="1h",
    ),
    "records of one arrival in order of sequence refire a window, on ticks": a_stream(
        *((1, 15, "a", 1), (20, 3, "a", 3), (20, 5, "a", 1), (20, 4, "a", 2), (20, 1, "a", 2)),
        channels=["a"],
        sequence="seq",
        emit=AS_TICKS,
        allowed_lateness="1h",
    ),
    "a sequence of any 64 bits, and none at all": a_stream(
        *((1, 15, "a", 2**63 - 1), (1, 5, "a", -(2**63)), (1, 4, "a"), (2, 3, "a", 0)),
        channels=["a"],
        sequence="seq",
        end_of_input=True,
    ),
    "the largest bound of all": a_stream(
        *((1, 5, "a"), (2, -5, "a"), (3, 40, "a")),
        channels=["a"],
        watermark=bounded(MAX_WATERMARK),
        end_of_input=True,
    ),
    "a bound that no float can tell, carried over a midnight": a_stream(
        *(
            (DAY_MS - 58, -52, "b"),
            (DAY_MS - 49, DAY_MS - 42, "c"),
            (DAY_MS - 40, DAY_MS - 67, "c"),
        ),
        *((DAY_MS - 31, 2 * DAY_MS - 60, "b"), (DAY_MS - 31, DAY_MS - 41, "a")),
        watermark=bounded(2**62),
        emit=AS_TICKS,
        horizon_ms=DAY_MS + 19,
    ),
    "a lateness that saturates, and an input that ends": a_stream(
        *((1, 5, "a"), (2, 25, "a"), (3, 6, "a")),
        channels=["a"],
        allowed_lateness=f"{MAX_WATERMARK}ms",
        end_of_input=True,
    ),
    "a lateness that saturates only after 1970": a_stream(
        *((1, -25, "a"), (2, 25, "a"), (3, -26, "a"), (4, 40, "a"), (5, 5, "a")),
        channels=["a"],
        allowed_lateness=f"{MAX_WATERMARK}ms",
        end_of_input=True,
    ),
    "a tick on the very millisecond of the horizon": a_stream(
        *((1, 15, "a"), (8, 3, "a")), channels=["a"], emit=AS_TICKS, horizon_ms=14
    ),
    "a tick on midnight, and days without an arrival": a_stream(
        *((DAY_MS - 1, DAY_MS + 15, "a"), (DAY_MS, DAY_MS, "a"), (5 * DAY_MS, DAY_MS + 4, "a")),
        channels=["a"],
        emit={"every": "1h"},
        horizon_ms=6 * DAY_MS,
    ),
    "a tick only after some midnights": a_stream(
        *((5, 15, "a"), (DAY_MS + 5, 3, "a"), (3 * DAY_MS, 4, "a"), (3 * DAY_MS, 95, "a")),
        channels=["a"],
        emit={"every": "3d"},
        horizon_ms=7 * DAY_MS,
    ),
    "a channel joins days after a window has fired, and a record was late": a_stream(
        *((5, 3, "a"), (6, 25, "a"), (7, 4, "a"), (DAY_MS + 1, DAY_MS + 3, "c")),
        horizon_ms=DAY_MS + 1_000,
        end_of_input=True,
    ),
    "channels end one by one, and the last but one lets windows fire": a_stream(
        *((1, 4, "a"), (2, 27, "c"), (3, 33, "a")),
        channels=["a", "b", "c"],
        end_of_input=True,
    ),
    "channels end one by one on ticks, when one has offered nothing yet": a_stream(
        *((1, 4, "a"), (2, 27, "c"), (8, 33, "a"), (13, 44, "c")),
        channels=["b", "a", "c"],
        emit=AS_TICKS,
        horizon_ms=14,
        end_of_input=True,
    ),
    "sessions whose channels end one by one": a_stream(
        *((1, 4, "a"), (2, 27, "c"), (3, 33, "a")),
        channels=["a", "b", "c"],
        window={"session": "5ms"},
        end_of_input=True,
    ),
    "sessions whose channels end one by one days after the last record": a_stream(
        *((1, 4, "a"), (2, 27, "c"), (3, 33, "a")),
        channels=["a", "b", "c"],
        window={"session": "5ms"},
        horizon_ms=3 * DAY_MS,
        end_of_input=True,
    ),
    "sessions whose channels end one by one, a silent one first": a_stream(
        *((1, 4, "a"), (8, 27, "c"), (9, 33, "a"), (30, 60, "a"), (30, 52, "c")),
        channels=["b", "a", "c"],
        watermark=bounded(5) | {"emit": AS_TICKS, "idleness": "3ms"},
        window={"session": "5ms"},
        horizon_ms=31,
        end_of_input=True,
    ),
    **{
        f"channels end one by one: {kind}": the_channels_end_one_by_one(window)
        for kind, window in {
            "the sessions of which a law found it": {"session": "24ms"},
            "tumbling": {"tumbling": "24ms"},
            "sliding": {"sliding": "24ms", "every": "9ms"},
            "cumulative": {"cumulative": "24ms", "step": "8ms"},
        }.items()
    },
}
