"""Flink's event-time rules record by record: the definition that the engine is tested against."""

from strandline.reference.answer import Firing, LateRecord, Origin, Replay
from strandline.reference.chained import replay_chained
from strandline.reference.joins import Pair, PairReplay, replay_interval_join, replay_windows_of_two
from strandline.reference.records import Record
from strandline.reference.replay import replay
from strandline.reference.tables import Tables

__all__ = [
    "Firing",
    "LateRecord",
    "Origin",
    "Pair",
    "PairReplay",
    "Record",
    "Replay",
    "Tables",
    "replay",
    "replay_chained",
    "replay_interval_join",
    "replay_windows_of_two",
]
