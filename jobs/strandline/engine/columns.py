"""The names of the columns that the engine adds, with a prefix that no user's column has.

The words *instant*, *rank*, *seen from* and *offer* are explained in `position.axis`.
"""

from __future__ import annotations

from strandline.spec.pipeline import OWN_PREFIX as _PREFIX
from strandline.spec.pipeline import PipelineSpec

ARRIVAL_DAY = _PREFIX + "arrival_day"
"""The arrival date of a record: its partition, if the table is partitioned, else by its arrival."""
ARRIVAL = _PREFIX + "arrival_ms"
INSTANT = _PREFIX + "instant"
"""The arrival of a record and, where it counts, its sequence, as one number: see `Axis`."""
AT_ARRIVAL = _PREFIX + "at_arrival"
"""The instant of a record among the instants of both inputs of a join."""
SEQUENCE = _PREFIX + "sequence"
TS = _PREFIX + "ts_ms"
CHANNEL = _PREFIX + "channel"
CANDIDATE = _PREFIX + "candidate_ms"
"""The watermark, in ms, that a record offers to its channel; null: none."""
REASON = _PREFIX + "reason"
"""Why a record is malformed; null for a well-formed one."""
STEP = _PREFIX + "step_ms"
"""The start, in ms, of the step of the grid (`Grid.step_ms`) that the record lies in."""
PANE = _PREFIX + "pane_ms"
"""The start, in ms, of the record's pane: all records of a pane have the same windows."""
WINDOW = _PREFIX + "window_id"
"""The id of a window in the grid: its start, for a cumulative window its end, in ms."""
SLOT = _PREFIX + "slot_ms"
"""The start, in ms, of the record's newest window: its window with the latest start."""
THRESHOLD = _PREFIX + "threshold_ms"
"""The largest threshold of the grid that the record's candidate reaches; null: it reaches none."""
RECORDS = _PREFIX + "records"
LARGEST_TS = _PREFIX + "largest_ts_ms"
FIRST_ARRIVAL = _PREFIX + "first_arrival_ms"

OLDEST = _PREFIX + "oldest_id"
"""The id of the oldest window of a pane, or of its oldest window in a range."""
NEWEST = _PREFIX + "newest_id"
NEWEST_WINDOW = _PREFIX + "newest_window_id"
"""The window in which a record is counted: its newest; between two windows, the window before."""
MISSED = _PREFIX + "missed"
"""The number of windows that a refused record misses; 0 between two windows."""
SURE_BEFORE = _PREFIX + "sure_before"
"""Records before this instant are on time for all windows of their pane."""
NEWEST_CLOSE_FROM = _PREFIX + "newest_close_from"
IN_NEWEST_WINDOW = _PREFIX + "in_newest_window"
"""The number of accepted records whose newest window this is: each is counted in that alone."""
MISSED_PAIRS = _PREFIX + "missed_pairs"
"""The number of records that this window refused and another one accepted."""

FIRE_FROM = _PREFIX + "fire_from"
"""The first instant whose records arrive after the window has fired."""
CLOSE_RANK = _PREFIX + "close_rank"
CLOSE_FROM = _PREFIX + "close_from"
"""The first instant whose records are late for the window."""
SLOT_END = _PREFIX + "slot_end_ms"
FIRE_AT = _PREFIX + "fire_at_ms"
CLOSE_AT = _PREFIX + "close_at_ms"
ENDED_AT = _PREFIX + "ended_at_ms"
"""When the input of the slot has ended, in ms; null: it has not."""
RECORD_ID = _PREFIX + "record_id"
WATERMARK = _PREFIX + "watermark_ms"

ADVANCE = _PREFIX + "advance"
"""For results of another pipeline's windows: the RANK of the watermark advance that fired it, just
before which it arrives; null: a record fired it."""
AT_WATERMARK = _PREFIX + "at_watermark"
"""Whether a record's event time equals the watermark at its arrival."""
BUCKET = _PREFIX + "bucket_ms"
"""The start, in ms, of the bucket of event times within which an interval join compares records."""
END = _PREFIX + "end_ms"
"""The event time plus the session gap: the end of a session of this record alone."""
AHEAD_BEFORE = _PREFIX + "ahead_before"
"""Records before this instant are *ahead* of the watermark: see `sessions.condense`."""
PART = _PREFIX + "part_ms"
"""The start, in ms, of the part of its slot that a record lies in."""
PLACE = _PREFIX + "place_ms"
"""The event time, in ms, of a record behind the watermark; else a time that close records share."""
START = _PREFIX + "start_ms"
ROW = _PREFIX + "row"
"""The number of a row of `sessions.condense.digest`, which stands for records of one outcome."""
CHAIN = _PREFIX + "chain"
"""The ROW of the first of connected rows of a key: their windows overlap or touch each other."""
ALONE = _PREFIX + "alone"
"""Whether a run of connected rows ahead of the watermark is a CHAIN by itself: a session."""
ERA = _PREFIX + "era"
"""The number of ranges whose input had ended, by `--close`, before a record arrived."""
ENDED = _PREFIX + "ended_ms"
"""When the input of a fired window had ended, in ms; null: it had not, up to the horizon."""
FIRING = _PREFIX + "firing"
"""The number of a firing in its group.

Where sets compute it: 0 by the watermark, and of a session alone; from 1 by late records. In a
replay: from 1; below 1: a window in state.
"""

SEEN_FROM = _PREFIX + "seen_from"
"""The first instant whose records arrive after a watermark was emitted."""
RANK = _PREFIX + "rank"
"""The order at one instant: the emissions of channels by number, then the records."""

QUARANTINED = _PREFIX + "quarantined"
"""A whole quarantine row, as a column beside the landing row in it."""


def is_ours(name: str) -> bool:
    """Whether a column is one that the engine has added."""
    return name.lower().startswith(_PREFIX)


def key_column(name: str) -> str:
    """The engine's column of a key: the source may have another column of the same name."""
    return f"{_PREFIX}key_{name}"


def keys_of(spec: PipelineSpec) -> list[str]:
    """The engine's columns of a pipeline's keys."""
    return [key_column(name) for name in spec.source.key]


def window_of(spec: PipelineSpec) -> list[str]:
    """The columns that identify a window of a key."""
    return [*keys_of(spec), WINDOW]
