"""Flink's event-time rules record by record: the definition that the engine is held against."""

from strandline.reference.answer import Firing, LateRecord, Moment, Replay
from strandline.reference.records import Record
from strandline.reference.replay import replay
from strandline.reference.tables import Tables

__all__ = ["Firing", "LateRecord", "Moment", "Record", "Replay", "Tables", "replay"]
