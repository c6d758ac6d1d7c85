"""The timeline table: the cells of every observed day, written once for each whole day."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import WriterProperties, write_deltalake

from strandline.engine.frames import to_pandas
from strandline.engine.idleness.kept_steps import StepDays
from strandline.engine.idleness.source import Carried
from strandline.engine.idleness.steps import steps_from, steps_to
from strandline.engine.position.axis import Axis
from strandline.engine.timeline import (
    CELL_COLUMNS,
    CHANNEL_COLUMNS,
    DAY_COLUMNS,
    MALFORMED_COLUMNS,
    Observed,
    channel_days_of,
    together,
)
from strandline.engine.watermark.observed import KnownSteps, ObservedDay
from strandline.lake.store import Store, dataset_of
from strandline.model.facts import DayFacts
from strandline.model.intervals import DAY_MS, EVERYTHING, TimeRange
from strandline.spec.pipeline import PipelineSpec

_LONG = pa.int64()
SCHEMA = pa.schema(
    [
        ("arrival_date", pa.date32()),
        ("kind", pa.string()),
        ("reason", pa.string()),
        ("channel", pa.string()),
        ("event_date", pa.date32()),
        ("slot_ms", _LONG),
        ("threshold_ms", _LONG),
        ("pending", pa.bool_()),
        ("records", _LONG),
        ("least_ts_ms", _LONG),
        ("largest_ts_ms", _LONG),
        ("largest_end_ms", _LONG),
        ("largest_candidate_ms", _LONG),
        ("first_arrival_ms", _LONG),
        ("first_sequence", _LONG),
        ("settled_ms", _LONG),
        ("pending_ms", _LONG),
        ("violations", _LONG),
        ("until_arrival_ms", _LONG),
        ("rank", _LONG),
        ("watermark_ms", _LONG),
        ("source_state", pa.string()),
        ("files_digest", pa.string()),
        ("landing_version", _LONG),
        ("timeline_fingerprint", pa.string()),
    ]
)
"""Kinds of rows: cell, channel and day; where channels can go idle also step (`first_*`: the first
instant that sees it) and source (where the source stands after the day). Of no fingerprint, and
kept under every one: landed (what the landing table said of the day, see `DayFacts`) and lost (the
event times of a day whose rows have gone, by event date)."""
_SMALL_GROUPS = WriterProperties(max_row_group_size=16_384)
"""A reader skips the groups that hold nothing of what it asks for."""
_STEP_COLUMNS = (
    "arrival_date",
    "first_arrival_ms",
    "first_sequence",
    "until_arrival_ms",
    "rank",
    "watermark_ms",
)


@dataclass(frozen=True)
class StoredTimeline:
    """What the table holds of whole days: see `Timeline`. Each question reads what it needs.

    Attributes:
        store: the pipeline's tables.
        fingerprint: that the days were observed under.
        before_ms: only days that were over by then.
        without: days to leave out: they are observed anew.
    """

    store: Store
    fingerprint: str
    before_ms: int
    without: frozenset[date] = frozenset()

    @cached_property
    def channel_days(self) -> pd.DataFrame:
        """See `Timeline`."""
        days = self._read("channel", CHANNEL_COLUMNS)
        old = set(days.loc[days["first_arrival_ms"].isna(), "arrival_date"])
        if not old:
            return days
        kept = days[~days["arrival_date"].isin(old)]
        return together(kept, channel_days_of(self.cells(old)))

    @cached_property
    def day_map(self) -> pd.DataFrame:
        """See `Timeline`."""
        return self._read("day", DAY_COLUMNS).dropna(subset=["event_date"])

    @cached_property
    def malformed(self) -> pd.DataFrame:
        """See `Timeline`."""
        return self._read("cell", MALFORMED_COLUMNS, ds.field("reason").is_valid())

    def cells(
        self,
        days: Collection[date],
        *,
        slots: TimeRange = EVERYTHING,
        least_threshold_ms: int | None = None,
    ) -> pd.DataFrame:
        """See `Timeline`."""
        wanted = ds.field("reason").is_null()
        if slots != EVERYTHING:
            wanted &= ds.field("slot_ms") >= slots.start_ms
            wanted &= ds.field("slot_ms") < slots.end_ms
        if least_threshold_ms is not None:
            wanted &= ds.field("threshold_ms") >= least_threshold_ms
        return self._read("cell", CELL_COLUMNS, wanted, days)

    def _read(
        self,
        kind: str,
        names: Sequence[str],
        wanted: ds.Expression | None = None,
        days: Collection[date] | None = None,
    ) -> pd.DataFrame:
        if self.without:
            kept = ~ds.field("arrival_date").isin(pa.array(sorted(self.without), pa.date32()))
            wanted = kept if wanted is None else wanted & kept
        rows = _rows(
            self.store,
            kind,
            names,
            self.fingerprint,
            before_ms=self.before_ms,
            of_days=days,
            wanted=wanted,
            dataset=self._dataset,
        )
        return to_pandas(rows)

    @cached_property
    def _dataset(self) -> ds.Dataset | None:
        return _dataset(self.store)


def read_violations(store: Store, fingerprint: str, *, before_ms: int) -> int:
    """The violations of an ascending order on the whole days observed before an instant."""
    rows = _rows(store, "channel", ["violations"], fingerprint, before_ms=before_ms)
    return pc.sum(rows["violations"]).as_py() or 0


def read_steps(store: Store, spec: PipelineSpec, axis: Axis, *, before_ms: int) -> KnownSteps:
    """The steps of the whole days observed before an instant, and where the source stands then."""
    fingerprint = spec.timeline_fingerprint
    carried = read_source(store, fingerprint, before_ms=before_ms)
    if carried is None or carried.until_ms is None:
        return KnownSteps.none(spec, axis)

    def read(days: Collection[date]) -> pd.DataFrame:
        rows = _rows(store, "step", _STEP_COLUMNS, fingerprint, of_days=days)
        return steps_from(to_pandas(rows), axis)

    names = ["arrival_date", "until_arrival_ms", "watermark_ms"]
    rows = to_pandas(_rows(store, "source", names, fingerprint, before_ms=before_ms))
    days = _with_states(store, rows, fingerprint).rename(columns={"until_arrival_ms": "until_ms"})
    return KnownSteps(StepDays(days.sort_values("arrival_date", ignore_index=True), read), carried)


def _with_states(store: Store, days: pd.DataFrame, fingerprint: str) -> pd.DataFrame:
    """Where the watermark stood after each day; of a table that does not tell, by the states."""
    old = set(days.loc[days["until_arrival_ms"].isna(), "arrival_date"])
    if not old:
        return days
    rows = _rows(store, "source", ["arrival_date", "source_state"], fingerprint, of_days=old)
    told = {row["arrival_date"]: Carried.from_json(row["source_state"]) for row in rows.to_pylist()}
    there = days["arrival_date"].map(told)
    return days.assign(
        until_arrival_ms=there.map(lambda state: state.until_ms),
        watermark_ms=there.map(lambda state: state.combined_ms),
    ).where(days["arrival_date"].isin(old), days)


def read_source(
    store: Store, fingerprint: str | None = None, *, before_ms: int | None = None
) -> Carried | None:
    """Where the source stands after the last whole day observed before an instant.

    None: its channels do not go idle, or no day is observed. `fingerprint`: None means any.
    """
    days = _rows(store, "source", ["arrival_date"], fingerprint, before_ms=before_ms)
    last = pc.max(days["arrival_date"]).as_py()
    if last is None:
        return None
    rows = _rows(store, "source", ["source_state"], fingerprint, of_days=[last])
    return Carried.from_json(rows["source_state"][0].as_py())


def channel_days(store: Store) -> pd.DataFrame:
    """What each channel has offered on each observed day: settled by midnight, and pending."""
    names = ["channel", "arrival_date", "settled_ms", "pending_ms"]
    return to_pandas(_rows(store, "channel", names))


def _rows(
    store: Store,
    kind: str,
    names: Sequence[str],
    fingerprint: str | None = None,
    *,
    before_ms: int | None = None,
    of_days: Collection[date] | None = None,
    wanted: ds.Expression | None = None,
    dataset: ds.Dataset | None = None,
) -> pa.Table:
    """Some columns of the rows of a kind; null where a table is from before there were such.

    Args:
        store: the pipeline's tables.
        kind: of rows.
        names: of columns.
        fingerprint: that the days were observed under; None: any.
        before_ms: only of days that were over by then; None: of all.
        of_days: only of these days; None: of all.
        wanted: only these rows; None: all of the kind.
        dataset: the table, where it is open.
    """
    rows = _dataset(store) if dataset is None else dataset
    if rows is None:
        return pa.schema([SCHEMA.field(name) for name in names]).empty_table()
    of_kind = ds.field("kind") == kind
    wanted = of_kind if wanted is None else of_kind & wanted
    if fingerprint is not None:
        wanted &= ds.field("timeline_fingerprint") == fingerprint
    if before_ms is not None:
        wanted &= ds.field("arrival_date") < pa.scalar(before_ms // DAY_MS, pa.date32())
    if of_days is not None:
        wanted &= ds.field("arrival_date").isin(pa.array(sorted(of_days), pa.date32()))
    return rows.to_table(columns=list(names), filter=wanted)


def _dataset(store: Store) -> ds.Dataset | None:
    """The table; None: there is none yet."""
    table = store.table("timeline")
    return None if table is None else dataset_of(table).replace_schema(SCHEMA)


def read_facts(store: Store) -> dict[date, DayFacts]:
    """What the landing table said of each day when it was observed, under whatever fingerprint."""
    names = ["arrival_date", "records", "files_digest", "landing_version"]
    return {
        row["arrival_date"]: DayFacts(row["records"], row["files_digest"], row["landing_version"])
        for row in _rows(store, "landed", names).to_pylist()
    }


def read_event_times(store: Store, days: Collection[date] | None) -> dict[date, list[TimeRange]]:
    """The event times that some days were observed with: a range an event date; None: all days."""
    names = ["arrival_date", "least_ts_ms", "largest_ts_ms", "records"]
    found = [
        row
        for kind in ("day", "lost")
        for row in _rows(store, kind, names, of_days=days).to_pylist()
        if row["records"]
    ]
    times: dict[date, list[TimeRange]] = {}
    for row in found:
        held = TimeRange(row["least_ts_ms"], row["largest_ts_ms"] + 1)
        times.setdefault(row["arrival_date"], []).append(held)
    return times


def rows_observed(store: Store, days: Collection[date]) -> dict[date, int]:
    """How many rows some days were observed with, by their cells."""
    rows = _rows(store, "cell", ["arrival_date", "records"], of_days=days)
    counted = rows.group_by("arrival_date").aggregate([("records", "sum")]).to_pylist()
    return {row["arrival_date"]: row["records_sum"] for row in counted}


def observed_days(store: Store) -> dict[str, set[date]]:
    """The whole days that have been observed, by the fingerprint that they were observed under."""
    dataset = _dataset(store)
    if dataset is None:
        return {}
    named = ["timeline_fingerprint", "arrival_date"]
    # older tables tell a day of malformed rows alone by its cells
    malformed = (ds.field("kind") == "cell") & ds.field("reason").is_valid()
    rows = dataset.to_table(columns=named, filter=(ds.field("kind") == "day") | malformed)
    days = rows.group_by(named).aggregate([]).to_pylist()
    observed: dict[str, set[date]] = {}
    for row in days:
        observed.setdefault(row["timeline_fingerprint"], set()).add(row["arrival_date"])
    return observed


@dataclass(frozen=True)
class DaysToWrite:
    """What one commit makes count.

    Attributes:
        spec: the pipeline.
        axis: of the instants.
        observed: holds the cells of the days (others are left out).
        followed: where channels can go idle, holds their steps.
        days: the whole days to write; what stood of them goes.
        facts: what the landing table says of each of them.
        violations: `arrival_date`, `channel`, `violations`, where these are counted.
    """

    spec: PipelineSpec
    axis: Axis
    observed: Observed
    followed: Sequence[ObservedDay]
    days: Collection[date]
    facts: Mapping[date, DayFacts]
    violations: pd.DataFrame | None = None


def commit_days(
    store: Store,
    written: DaysToWrite,
    *,
    replace: bool,
    lost: Collection[date] = (),
) -> None:
    """Write what whole days say, in the one commit that makes them count; call it under the lock.

    Args:
        store: the pipeline's tables.
        written: the days. Where days follow from those before, later days go.
        replace: whether the table holds another fingerprint's days: they go, but for facts.
        lost: days whose rows have gone: their event times are kept, whatever the fingerprint.
    """
    rows = _rows_of(written)
    uri, parted, days = store.uri("timeline"), ["arrival_date"], sorted(written.days)
    if replace:
        rows = pa.concat_tables([rows, _kept(store, set(days), set(lost))])
        write_deltalake(
            uri,
            rows,
            mode="overwrite",
            partition_by=parted,
            schema_mode="overwrite",
            writer_properties=_SMALL_GROUPS,
        )
        return
    if not days:
        return
    predicate = f"arrival_date IN ({', '.join(repr(day.isoformat()) for day in days)})"
    if written.spec.days_follow_each_other:
        predicate = f"arrival_date >= '{days[0].isoformat()}'"
        kept = ", ".join(repr(day.isoformat()) for day in sorted(lost))
        if kept:
            predicate += f" AND NOT (kind IN ('landed', 'lost') AND arrival_date IN ({kept}))"
    write_deltalake(
        uri,
        rows,
        mode="overwrite",
        predicate=predicate,
        partition_by=parted,
        schema_mode="merge",
        writer_properties=_SMALL_GROUPS,
    )


def refresh_facts(store: Store, facts: Mapping[date, DayFacts]) -> None:
    """Keep what the landing table says of days whose rows only moved; call it under the lock."""
    if not facts:
        return
    days = ", ".join(repr(day.isoformat()) for day in sorted(facts))
    write_deltalake(
        store.uri("timeline"),
        _table(_facts_rows(facts)),
        mode="overwrite",
        predicate=f"kind = 'landed' AND arrival_date IN ({days})",
        partition_by=["arrival_date"],
        schema_mode="merge",
    )


def _rows_of(written: DaysToWrite) -> pa.Table:
    observed, days = written.observed, set(written.days)
    in_order = observed.every.sort_values(["slot_ms", "threshold_ms"], na_position="first")
    cells = in_order[in_order["arrival_date"].isin(days)].assign(kind="cell")
    channels = observed.channel_days.assign(kind="channel")
    if written.violations is not None:
        counted = written.violations[["arrival_date", "channel", "violations"]]
        channels = channels.merge(counted, on=["arrival_date", "channel"], how="left")
    day_map = observed.day_map.assign(kind="day")
    parts = [part[part["arrival_date"].isin(days)] for part in (channels, day_map)]
    for followed in written.followed:
        if followed.day in days:
            steps = steps_to(followed.steps, written.axis)
            state = {
                "arrival_date": followed.day,
                "source_state": followed.carried.to_json(),
                "until_arrival_ms": followed.carried.until_ms,
                "watermark_ms": followed.carried.combined_ms,
            }
            parts += [steps.assign(kind="step"), pd.DataFrame([state]).assign(kind="source")]
    # a day on which nothing counts has been observed all the same
    silent = sorted(days - set(day_map["arrival_date"]))
    if silent:
        parts.append(pd.DataFrame({"arrival_date": silent, "kind": "day", "records": 0}))
    fingerprint = written.spec.timeline_fingerprint
    tables = [_table(part.assign(timeline_fingerprint=fingerprint)) for part in parts]
    of_cells = _table(cells.assign(timeline_fingerprint=fingerprint))
    facts = {day: said for day, said in written.facts.items() if day in days}
    # small kinds first, then cells by slot and threshold: so that few row groups hold what is asked
    return pa.concat_tables([*tables, _table(_facts_rows(facts)), of_cells])


def _facts_rows(facts: Mapping[date, DayFacts]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "arrival_date": list(facts),
            "records": pd.array([said.rows for said in facts.values()], dtype="Int64"),
            "files_digest": [said.digest for said in facts.values()],
            "landing_version": [said.landing_version for said in facts.values()],
        }
    ).assign(kind="landed")


def _kept(store: Store, anew: set[date], lost: set[date]) -> pa.Table:
    """What stays of days as another fingerprint's go: the facts of those that are not written anew.

    Of days whose rows have gone, the event times too; also of those that are written anew from
    what is left of them.
    """
    dataset = _dataset(store)
    if dataset is None:
        return SCHEMA.empty_table()
    wanted = ds.field("kind").isin(["landed", "lost", "day"])
    rows = to_pandas(dataset.to_table(filter=wanted))
    of_lost = rows["arrival_date"].isin(lost)
    times = rows[of_lost & (rows["kind"] != "landed") & (rows["records"] > 0)]
    times = times[["arrival_date", "event_date", "records", "least_ts_ms", "largest_ts_ms"]]
    facts = rows[(rows["kind"] == "landed") & ~(rows["arrival_date"].isin(anew) & ~of_lost)]
    return pa.concat_tables([_table(facts), _table(times.assign(kind="lost"))])


def _table(rows: pd.DataFrame) -> pa.Table:
    """Rows of one kind; the columns that the kind does not have are null."""
    columns = [
        pa.array(rows[field.name], field.type, from_pandas=True)
        if field.name in rows
        else pa.nulls(len(rows), field.type)
        for field in SCHEMA
    ]
    return pa.table(columns, schema=SCHEMA)
