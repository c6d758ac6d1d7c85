"""What a record-by-record replay says of a landing table, and what is published, in one shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from answers import edges
from lakes import RESULTS, instant, land, ms

from strandline.model.lateness import MIN_WATERMARK
from strandline.reference.records import Record, without_duplicates
from strandline.reference.replay import replay
from strandline.reference.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lakes import Line

    from strandline.pipeline.request.outcome import Outcome
    from strandline.reference.answer import Replay
    from strandline.spec import PipelineSpec

Rows = dict[str, list[tuple[Any, ...]]]


def assert_told_by_replay(line: Line, rows: Iterable[Mapping[str, Any]], horizon: str) -> None:
    """The published tables are what a replay of all that has landed says as of a horizon."""
    expected, found = told_by_replay(line.spec, rows, horizon), published(line)
    for name in line.results:
        assert found[name] == expected[name], name


def by_days(line: Line, rows: Sequence[Mapping[str, Any]], *days: str) -> Line:
    """Land rows and run up to each day: after each but the last the tables are a replay's."""
    land(line.folder, rows)
    for day in days[:-1]:
        line.advance(day)
        assert_told_by_replay(line, rows, day)
    line.advance(days[-1])
    return line


def assert_same_tables(line: Line, other: Line) -> None:
    """Two lines have published the same."""
    for name in line.results:
        assert line.rows(name) == other.rows(name), name


def assert_range_alone(line: Line, whole: Line, start: str, end: str) -> None:
    """A line has published what another one says of a range, and nothing else of any slot."""
    for name in RESULTS:
        alone = [row for row in line.rows(name) if row.get("slot_start", True)]
        assert alone == of_range(whole.rows(name), start, end), name
        assert alone or name == "quarantine"


def assert_nothing_written(line: Line, run: Callable[[], Outcome]) -> None:
    """A run finds no difference, and commits nothing but its steps in the ledger."""
    before = line.versions()
    outcome = run()
    assert outcome.status == "published"
    assert not outcome.changed, outcome.diff
    assert line.versions() == before


def of_range(rows: Sequence[Mapping[str, Any]], start: str, end: str) -> list[Mapping[str, Any]]:
    """The rows of a table whose window or slot starts in a range."""
    column = "window_start" if rows and "window_start" in rows[0] else "slot_start"
    return [row for row in rows if row[column] and instant(start) <= ms(row[column]) < instant(end)]


def assert_books_balance(line: Line) -> None:
    """Every book of every run so far."""
    for entry in line.ledger:
        for book in entry.books or []:
            assert book.balanced, book


def reason_of(row: Mapping[str, Any], spec: PipelineSpec) -> str | None:
    """Why a row of `lakes.SCHEMA` is malformed, by the order of the design."""
    source, arrived = spec.source, row["arrived_at"]
    declared = source.declared_channels
    reasons = {
        "null_event_time": row["happened_at"] is None,
        "null_arrival": arrived is None,
        "arrival_outside_partition": source.arrival_date is not None
        and arrived is not None
        and arrived.date() != row["arrived_on"],
        "null_channel": row["source"] is None,
        "undeclared_channel": declared is not None and row["source"] not in declared,
        "null_key": row["device"] is None,
        "invalid": source.valid is not None and row["amount"] >= 95,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def told_by_replay(spec: PipelineSpec, rows: Iterable[Mapping[str, Any]], horizon: str) -> Rows:
    """The tables of a pipeline over `lakes.SCHEMA` as of a horizon, whole days observed."""
    known = [row for row in rows if _known_from(row, spec) < instant(horizon)]
    counting, duplicates = _deduplicated(spec, known)
    replayed = _replay(spec, counting, horizon)
    tables = Tables(spec, replayed)
    return _sorted(
        windows=[
            (
                (*edges(row.window).values(), row.key[0]),
                _content(row.members),
                (row.late_accepted, row.firings, row.state, row.fired_at_ms, row.closed_at_ms),
            )
            for row in tables.windows()
        ],
        quarantine=[
            (
                (row.slot_start_ms, row.record.payload["position"], row.reason),
                (row.watermark_ms, row.late_by_ms, row.missed_windows),
            )
            for row in tables.quarantine()
        ]
        + [
            ((None, row["position"], reason_of(row, spec)), (None, None, None))
            for row in known
            if reason_of(row, spec)
        ]
        + [
            ((None, record.payload["position"], "duplicate"), (None, None, None))
            for record in duplicates
        ],
        completeness=[
            (
                tuple(edges(row.window).values()),
                (row.slot.state, row.slot.fired_at_ms, row.slot.closed_at_ms),
                (row.on_time, row.late_accepted, row.late, row.no_window, row.missed_pairs),
                row.unfired,
                list(row.channels_heard),
            )
            for row in tables.completeness()
        ],
        firings=[
            (
                (*edges(firing.window).values(), firing.key[0]),
                _content(firing.members),
                (firing.timing.name, _emitted(firing.watermark_ms), firing.origin.at_ms),
            )
            for firing in replayed.firings
        ],
    )


def _emitted(watermark_ms: int) -> int | None:
    """A watermark as tables have it: null before the first one is emitted."""
    return None if watermark_ms == MIN_WATERMARK else watermark_ms


def published(line: Line) -> Rows:
    """The published tables in the same shape, the gaps of the calendar left out."""
    (key,) = line.spec.source.key
    return _sorted(
        windows=[
            (
                (ms(row["window_start"]), ms(row["window_end"]), row[key]),
                (row["records"], row["total"], round(row["mean"], 6)),
                (
                    row["late_accepted"],
                    row["firings"],
                    row["state"],
                    ms(row["fired_at"]),
                    ms(row["closed_at"]),
                ),
            )
            for row in line.rows("windows")
        ],
        quarantine=[
            (
                (ms(row["slot_start"]), row["position"], row["reason"]),
                (row["watermark_ms"], row["late_by_ms"], row["missed_windows"]),
            )
            for row in line.rows("quarantine")
        ],
        completeness=[
            (
                (ms(row["slot_start"]), ms(row["slot_end"])),
                (row["state"], ms(row["fired_at"]), ms(row["closed_at"])),
                (
                    row["on_time"],
                    row["late_accepted"],
                    row["late"],
                    row["no_window"],
                    row["missed_pairs"],
                ),
                row.get("unfired") or 0,
                row["channels_heard"],
            )
            for row in line.rows("completeness")
            if not row["gap"]
        ],
        firings=[
            (
                (ms(row["window_start"]), ms(row["window_end"]), row[key]),
                (row["records"], row["total"], round(row["mean"], 6)),
                (row["timing"], row["watermark_ms"], ms(row["fired_at"])),
            )
            for row in line.rows("firings")
        ],
    )


def replay_of(spec: PipelineSpec, rows: Iterable[Mapping[str, Any]], horizon: str) -> Replay:
    """What a replay of the well-formed rows says as of a horizon."""
    counting, _ = _deduplicated(spec, rows)
    return _replay(spec, counting, horizon)


def _replay(spec: PipelineSpec, records: Iterable[Record], horizon: str) -> Replay:
    start_ms = instant("1") if spec.source.start is None else spec.source.start
    return replay(spec, records, start_ms=start_ms, horizon_ms=instant(horizon))


def _deduplicated(
    spec: PipelineSpec, rows: Iterable[Mapping[str, Any]]
) -> tuple[list[Record], list[Record]]:
    """The well-formed records that count, and the duplicates."""
    every = [_record(row, place, spec) for place, row in enumerate(rows)]
    records, rule = [record for record in every if record is not None], spec.source.deduplicate
    if rule is None:
        return records, []
    return without_duplicates(
        records,
        lambda record: tuple(record.payload[name] for name in rule.columns),
        within_ms=rule.within,
    )


def _known_from(row: Mapping[str, Any], spec: PipelineSpec) -> int:
    """A row is known with its partition, or by its arrival; one without a day at once."""
    if spec.source.arrival_date is not None:
        return instant(str(row["arrived_on"]))
    return ms(row["arrived_at"]) or 0


def _record(row: Mapping[str, Any], place: int, spec: PipelineSpec) -> Record | None:
    if reason_of(row, spec) is not None:
        return None
    return Record(
        arrival_ms=ms(row["arrived_at"]),
        ts_ms=ms(row["happened_at"]),
        record_id=f"{place:06d}",
        channel=row["source"],
        key=(row["device"].upper() if "who" in spec.source.key else row["device"],),
        sequence=row["position"] if spec.source.sequence else None,
        gap_ms=60_000 * (10 + row["position"] % 50),
        trigger_value=row["amount"],
        evictor_value=row["amount"],
        payload=row,
    )


def _content(members: Iterable[Record]) -> tuple[int, int, float]:
    amounts = [record.payload["amount"] for record in members]
    return len(amounts), sum(amounts), round(sum(amounts) / len(amounts), 6)


def _sorted(**tables: list[tuple[Any, ...]]) -> Rows:
    return {name: sorted(rows, key=repr) for name, rows in tables.items()}
