"""Writes to the timeline: the observations of whole days."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import write_deltalake

from strandline.engine.history.observed import ObservedDay
from strandline.engine.idleness.steps import steps_to
from strandline.engine.position.axis import Axis
from strandline.engine.timeline import Fresh
from strandline.engine.whole_numbers import to_pandas
from strandline.lake.store.day_conditions import in_days
from strandline.lake.store.lock import commit
from strandline.lake.store.schema import with_all_columns
from strandline.lake.store.store import Store
from strandline.lake.timeline.rows import SCHEMA, WRITTEN, TimelineTable
from strandline.model.facts import DayFacts
from strandline.spec.pipeline import PipelineSpec

_AT_ONCE = 1_000_000
"""The largest number of rows in a commit, except for a single day with more rows."""
_DAYS_AT_ONCE = 5_000
"""The largest number of days in a commit: delta-rs holds a file of each of them open."""


@dataclass(frozen=True)
class DaysToWrite:
    """The observations to write.

    Attributes:
        spec: the pipeline.
        axes: the axis of each source, by its side.
        observed: the cells of the days; cells of other days are ignored.
        observed_steps: the steps of channels, if they can go idle.
        days: the days to write, whose rows are replaced.
        facts: the facts of each day.
        violations: `arrival_date`, `channel`, `violations`, if they are counted.
    """

    spec: PipelineSpec
    axes: Mapping[str, Axis]
    observed: Fresh
    observed_steps: Sequence[ObservedDay]
    days: Collection[date]
    facts: Mapping[date, DayFacts]
    violations: pd.DataFrame | None = None

    def in_parts(self) -> list[list[date]]:
        """The days in order, divided into parts of a size for one commit."""
        well_formed = self.observed.day_map.groupby("arrival_date")["records"].sum()
        parts: list[list[date]] = [[]]
        records = 0
        for day in sorted(self.days):
            of_day = int(well_formed.get(day, 0))
            is_full = records + of_day > _AT_ONCE or len(parts[-1]) == _DAYS_AT_ONCE
            if parts[-1] and is_full:
                parts.append([])
                records = 0
            parts[-1].append(day)
            records += of_day
        return parts


def commit_days(
    store: Store,
    written: DaysToWrite,
    *,
    replace: bool,
    missing: Collection[date] = (),
) -> None:
    """Write the observations of whole days; call it under the lock.

    Many days are written in several commits, the earliest first: if the process dies in between,
    the days up to there are observed. The facts of the other days stay until their own commit, so
    that later runs recognize whether their rows have changed.

    Args:
        store: the pipeline's tables.
        written: the days. If days depend on days before them, later days are removed.
        replace: whether rows of another fingerprint are removed, except for facts.
        missing: days with removed rows, whose event times are kept under any fingerprint.
    """
    parts = written.in_parts()
    for number, days in enumerate(parts):
        if replace and not number:
            kept = _kept(store, set(days), set(missing))
            _write(store, _rows_of(written, days, kept), schema_mode="overwrite")
        elif days:
            rows = _rows_of(written, days, SCHEMA.empty_table())
            later = [day for part in parts[number + 1 :] for day in part]
            goes = _what_goes(written.spec, days, later, missing)
            _write(store, rows, predicate=goes, schema_mode="merge")


def _what_goes(
    spec: PipelineSpec, days: Sequence[date], later: Sequence[date], missing: Collection[date]
) -> str:
    """A condition for the rows that some days replace.

    Facts from the first of the `later` days on, which later commits write, stay until then.
    """
    if not spec.days_follow_each_other:
        return _on(days)
    goes = f"arrival_date >= '{days[0].isoformat()}'"
    if missing:
        goes += f" AND NOT (kind IN ('landed', 'lost') AND {_on(missing)})"
    if later:
        goes += f" AND NOT (kind = 'landed' AND arrival_date >= '{later[0].isoformat()}')"
    return goes


def _on(days: Collection[date]) -> str:
    return in_days("arrival_date", days)


def _write(
    store: Store,
    rows: pa.RecordBatchReader,
    *,
    schema_mode: Literal["merge", "overwrite"],
    predicate: str | None = None,
) -> None:
    table = store.newest("timeline")
    write_deltalake(
        store.uri("timeline") if table is None else table,
        rows,
        mode="overwrite",
        predicate=predicate,
        partition_by=["arrival_date"],
        schema_mode=schema_mode,
        writer_properties=WRITTEN,
        commit_properties=commit(store.uri("timeline")),
    )


def refresh_facts(store: Store, facts: Mapping[date, DayFacts]) -> None:
    """Replace the facts of the landing's log about days; call it under the lock.

    The days' rows are the same as before, in other files of the landing table.
    """
    days = sorted(facts)
    for begin in range(0, len(days), _DAYS_AT_ONCE):
        some = {day: facts[day] for day in days[begin : begin + _DAYS_AT_ONCE]}
        of_days = f"kind = 'landed' AND {_on(some)}"
        rows = _table(_facts_rows(some)).to_reader()
        _write(store, rows, schema_mode="merge", predicate=of_days)


def _rows_of(written: DaysToWrite, days: Sequence[date], kept: pa.Table) -> pa.RecordBatchReader:
    """The rows of some days: small kinds first, then cells by slot and threshold.

    This order lets readers skip most row groups.
    """
    own = {"kind": "cell", "timeline_fingerprint": written.spec.timeline_fingerprint}

    def batches() -> Iterator[pa.RecordBatch]:
        yield from kept.to_batches()
        yield from _narrow_rows(written, set(days)).to_batches()
        for cells in written.observed.tables_of(days):
            columns = {name: cells[name] for name in cells.column_names}
            columns |= {name: pa.repeat(value, len(cells)) for name, value in own.items()}
            yield from with_all_columns(pa.table(columns), SCHEMA).to_batches()

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


def _narrow_rows(written: DaysToWrite, days: set[date]) -> pa.Table:
    """The rows of some days, without cells."""
    observed = written.observed
    channels = observed.channel_days.assign(kind="channel")
    if written.violations is not None:
        counted = written.violations[["arrival_date", "channel", "violations"]]
        channels = channels.merge(counted, on=["arrival_date", "channel"], how="left")
    day_map = observed.day_map.assign(kind="day")
    parts = [part[part["arrival_date"].isin(days)] for part in (channels, day_map)]
    for observed_steps in written.observed_steps:
        if observed_steps.day in days:
            parts += _rows_of_steps(observed_steps, written.axes[observed_steps.name])
    # a day on which nothing counts has been observed all the same
    silent = sorted(days - set(day_map["arrival_date"]))
    if silent:
        parts.append(pd.DataFrame({"arrival_date": silent, "kind": "day", "records": 0}))
    fingerprint = written.spec.timeline_fingerprint
    tables = [_table(part.assign(timeline_fingerprint=fingerprint)) for part in parts]
    facts = {day: of_day for day, of_day in written.facts.items() if day in days}
    return pa.concat_tables([*tables, _table(_facts_rows(facts))])


def _rows_of_steps(observed_steps: ObservedDay, axis: Axis) -> list[pd.DataFrame]:
    """The steps of a day of a source with idleness, and the source's state after the day."""
    of_source = observed_steps.name or None
    steps = steps_to(observed_steps.steps, axis).assign(kind="step", channel=of_source)
    state = {
        "arrival_date": observed_steps.day,
        "channel": of_source,
        "source_state": observed_steps.carried.to_json(beside_another=of_source is not None),
        "until_arrival_ms": observed_steps.carried.until_ms,
        "watermark_ms": observed_steps.carried.combined_ms,
    }
    return [steps, pd.DataFrame([state]).assign(kind="source")]


def _facts_rows(facts: Mapping[date, DayFacts]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "arrival_date": list(facts),
            "records": pd.array([of_day.rows for of_day in facts.values()], dtype="Int64"),
            "files_digest": [of_day.digest for of_day in facts.values()],
            "landing_version": [of_day.landing_version for of_day in facts.values()],
            "landing_id": pd.array([of_day.table_id for of_day in facts.values()], dtype="string"),
        }
    ).assign(kind="landed")


def _kept(store: Store, rewritten: set[date], missing: set[date]) -> pa.Table:
    """The rows that stay when rows of another fingerprint are removed.

    They are the facts of days that are not rewritten, and the event times of days with removed
    rows, also of days that are rewritten from their remaining rows.
    """
    wanted = ds.field("kind").isin(["landed", "lost", "day"])
    rows = to_pandas(TimelineTable.open(store).narrow.filter(wanted))
    of_missing = rows["arrival_date"].isin(missing)
    times = rows[of_missing & (rows["kind"] != "landed") & (rows["records"] > 0)]
    times = times[["arrival_date", "event_date", "records", "least_ts_ms", "largest_ts_ms"]]
    facts = rows[(rows["kind"] == "landed") & ~(rows["arrival_date"].isin(rewritten) & ~of_missing)]
    return pa.concat_tables([_table(facts), _table(times.assign(kind="lost"))])


def _table(rows: pd.DataFrame) -> pa.Table:
    """The rows of one kind; columns that the kind does not have are null."""
    columns = [
        pa.array(rows[field.name], field.type, from_pandas=True)
        if field.name in rows
        else pa.nulls(len(rows), field.type)
        for field in SCHEMA
    ]
    return pa.table(columns, schema=SCHEMA)
