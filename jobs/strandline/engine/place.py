"""place and split: every record meets its window's slot, and is accepted or late."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c


@dataclass(frozen=True)
class Split:
    """The two fates of a placed record."""

    accepted: DataFrame
    late: DataFrame


def place(records: DataFrame, slots: DataFrame) -> DataFrame:
    """The records of the given slots, each with where its window fires and closes."""
    return records.join(F.broadcast(slots), c.SLOT)


def split(placed: DataFrame) -> Split:
    """Tell the accepted from the late: a record is late iff its window has closed before it.

    Flink: `WindowOperator#isWindowLate`; a record meets its window before the watermark that it
    causes, so the one that closes a window is accepted.
    """
    late = is_late()
    return Split(accepted=placed.where(~late), late=placed.where(late))


def is_late() -> Column:
    """Whether a placed record's window has closed before its instant."""
    return F.col(c.INSTANT) >= F.col(c.CLOSE_FROM)


def fires_at_once() -> Column:
    """Whether an accepted record meets a window that has fired: it fires it again, at once."""
    return F.col(c.INSTANT) >= F.col(c.FIRE_FROM)
