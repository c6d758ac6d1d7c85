"""The names of the columns that the engine adds; none of them can be a user's by accident."""

from __future__ import annotations

from strandline.spec.pipeline import OWN_PREFIX as _PREFIX
from strandline.spec.pipeline import PipelineSpec

ARRIVAL_DAY = _PREFIX + "arrival_day"
"""The partition that a record lies in (a date), or the date of its arrival."""
ARRIVAL = _PREFIX + "arrival_ms"
INSTANT = _PREFIX + "instant"
"""The arrival and, where it counts, the sequence as one number: the axis of `Axis`."""
AT_ARRIVAL = _PREFIX + "at_arrival"
"""The instant among the records of two inputs: the one on the axis of both."""
SEQUENCE = _PREFIX + "sequence"
TS = _PREFIX + "ts_ms"
CHANNEL = _PREFIX + "channel"
CANDIDATE = _PREFIX + "candidate_ms"
"""The watermark that a record offers; null: none."""
REASON = _PREFIX + "reason"
"""Why a record is malformed; null for a well-formed one."""
STEP = _PREFIX + "step_ms"
"""The start of the step of the grid that the record lies in."""
PANE = _PREFIX + "pane_ms"
"""The start of the record's pane: all records of a pane have the same windows."""
WINDOW = _PREFIX + "window_id"
"""A window by its id in the grid."""
SLOT = _PREFIX + "slot_ms"
"""The start of the record's newest window."""
THRESHOLD = _PREFIX + "threshold_ms"
"""The largest threshold of the grid that the record's candidate reaches; null: none."""
PENDING = _PREFIX + "pending"
"""Whether the record's candidate is not yet emitted at the midnight that ends its arrival day."""
EVENT_DATE = _PREFIX + "event_date"
RECORDS = _PREFIX + "records"
LEAST_TS = _PREFIX + "least_ts_ms"
LARGEST_TS = _PREFIX + "largest_ts_ms"
LARGEST_END = _PREFIX + "largest_end_ms"
"""Of sessions with gaps of their own the largest END; else null."""
LARGEST_CANDIDATE = _PREFIX + "largest_candidate_ms"
FIRST_INSTANT = _PREFIX + "first_instant"
LAST_ARRIVAL = _PREFIX + "last_arrival_ms"
"""The last arrival that lies in its day, in ms; of malformed rows too."""
ARRIVAL_HOURS = _PREFIX + "arrival_hours"
"""The hours of the day, UTC, in which records arrived: a bit each, the least one for 00:00."""
FIRST_ARRIVAL = _PREFIX + "first_arrival_ms"

OLDEST = _PREFIX + "oldest_id"
"""The oldest window of a pane, or of those that are asked for."""
NEWEST = _PREFIX + "newest_id"
NEWEST_WINDOW = _PREFIX + "newest_window_id"
"""The window that a record is counted in: its newest; in a gap between windows the one before."""
MISSED = _PREFIX + "missed"
"""How many windows a pane has; none in a gap."""
SURE_BEFORE = _PREFIX + "sure_before"
"""Records before this instant are on time for all windows of their pane."""
NEWEST_CLOSE_FROM = _PREFIX + "newest_close_from"
IN_NEWEST_WINDOW = _PREFIX + "in_newest_window"
"""Accepted records whose newest window this is: they are counted in it, and in no other one."""
MISSED_PAIRS = _PREFIX + "missed_pairs"
"""Records that this window refused and another kept."""

FIRE_FROM = _PREFIX + "fire_from"
"""Records from this instant on meet a window that has fired."""
CLOSE_RANK = _PREFIX + "close_rank"
CLOSE_FROM = _PREFIX + "close_from"
"""Records from this instant on are late for the window."""
SLOT_END = _PREFIX + "slot_end_ms"
FIRE_AT = _PREFIX + "fire_at_ms"
CLOSE_AT = _PREFIX + "close_at_ms"
ENDED_AT = _PREFIX + "ended_at_ms"
"""When the input of the slot had ended, if it had before the horizon."""
ENDS_FROM = _PREFIX + "ends_from"
"""From when on the input of a window has ended."""
ENDS_AT = _PREFIX + "ends_at_ms"
SLOT_STATE = _PREFIX + "slot_state"
RECORD_ID = _PREFIX + "record_id"
WATERMARK = _PREFIX + "watermark_ms"

ADVANCE = _PREFIX + "advance"
"""The RANK of the watermark advance just before which a result of other windows comes; null: a
record has fired it."""
AT_WATERMARK = _PREFIX + "at_watermark"
"""Whether a record's event time is the very watermark at its arrival."""
BUCKET = _PREFIX + "bucket_ms"
"""Where the event times begin that records are joined within."""
END = _PREFIX + "end_ms"
"""The event time and the session gap: where the session of this record alone would end."""
AHEAD_BEFORE = _PREFIX + "ahead_before"
"""Records before this instant are ahead of the watermark: they hold every session together."""
PART = _PREFIX + "part_ms"
"""The start of the part of its slot that a record lies in."""
PLACE = _PREFIX + "place_ms"
"""The event time of a record behind the watermark; of others a time shared by close ones."""
START = _PREFIX + "start_ms"
ROW = _PREFIX + "row"
"""The number of a row of `digest`: records with the same outcome."""
SESSION = _PREFIX + "session_ms"
"""The end of a session: it identifies the session in its key. Null: of none."""
ERA = _PREFIX + "era"
"""How often the input of some range had ended before a record arrived."""
ENDED = _PREFIX + "ended_ms"
"""When the input of a session had ended before the horizon; else after every instant."""
SEGMENT = _PREFIX + "segment_ms"
"""The end of a session as the watermark fires it, before records behind it have come."""
UNIT = _PREFIX + "unit"
"""The number of a segment or of a record behind the watermark: what sessions are made of."""
FIRING = _PREFIX + "firing"
"""The number of a firing: that of the unit which causes it."""

SEEN_FROM = _PREFIX + "seen_from"
"""The first instant whose records are judged by an emitted candidate."""
RANK = _PREFIX + "rank"
"""The order among what stands at one instant: channels by number, then the records."""


QUARANTINED = _PREFIX + "quarantined"
"""A quarantine row as a whole, beside the landing row that it holds."""


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
