"""The first records of discovered channels that joined at the same instant."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.engine import columns as c
from strandline.engine.history.history import History
from strandline.engine.history.known_records import of_days
from strandline.engine.watermark.by_steps import StepCrossings
from strandline.engine.watermark.probe_order import probe_order
from strandline.model.intervals import day_of


def in_probe_order(records: DataFrame, history: History) -> History:
    """The history with its channels in probe order, even if several joined at one instant.

    The timeline has the instant of a channel's first record, not its sequence and event time. They
    matter only for what a firing reports, and only where several channels joined at one instant;
    then the first records are looked up.

    Args:
        records: the well-formed records, at least of the days on which a channel joined.
        history: everything observed below the horizon.
    """
    spec, axis = history.spec, history.axis
    order = probe_order(history.timeline, spec, axis)
    if spec.source.declared_channels is not None or isinstance(history.crossings, StepCrossings):
        return history
    tied = order.tied
    if not tied:
        return history
    instants = sorted(set(tied.values()))
    first = (
        of_days(records, history, {day_of(axis.arrival_of(at)) for at in instants})
        .where(
            F.col(c.REASON).isNull()
            & F.col(c.INSTANT).isin([axis.literal(at) for at in instants])
            & F.col(c.CHANNEL).isin(sorted(tied))
        )
        .groupBy(c.CHANNEL)
        .agg(F.min(F.struct(c.INSTANT, c.SEQUENCE, c.TS)).alias("first"))
        .select(c.CHANNEL, f"first.{c.SEQUENCE}", f"first.{c.TS}")
    )
    behind = {str(row[0]): (int(row[1]), int(row[2])) for row in first.collect()}
    return history.probed_in(order.broken_by(behind))
