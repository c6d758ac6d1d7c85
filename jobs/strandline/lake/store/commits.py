"""The commits of a Delta table: their authors, and whether they changed rows or moved them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from deltalake import DeltaTable

from strandline.lake.store.reads import files_of


def commits(table: DeltaTable) -> Iterator[tuple[int, dict[str, Any]]]:
    """The versions of a table with their commit information, the newest first.

    They are read lazily, up to the first one that has been cleaned up. `DeltaTable.history` does
    not work if the table's path contains # or ?.
    """
    for version in range(table.version(), -1, -1):
        lines = _log_of(table, version)
        if lines is None:
            return
        actions = (json.loads(line) for line in lines if '"commitInfo"' in line)
        infos = (action.get("commitInfo") for action in actions)
        yield version, next(filter(None, infos), {})


def only_moved(table: DeltaTable, partition: str | None, days: Mapping[date, int]) -> set[date]:
    """The days of which no commit has removed rows since a version of the table.

    Commits may have moved rows to other files, as OPTIMIZE does.

    Args:
        table: the open table.
        partition: the column with the day of a file; None: there is none, so that removed rows
            may be of any day.
        days: the days, each with the version since which commits are examined.
    """
    if not days:
        return set()
    last: dict[date | None, int] = {}
    for version in range(min(days.values()) + 1, table.version() + 1):
        last |= dict.fromkeys(_days_of("remove", table, version, partition), version)
    of_any_day = last.get(None, -1)
    return {
        day
        for day, since in days.items()
        if max(last.get(day, -1), of_any_day) <= since <= table.version()
    }


def keeps_rows(table: DeltaTable, since: int) -> bool | None:
    """Whether no commit since a version has removed rows; None: some have been cleaned up."""
    if since > table.version():
        return False
    kept: bool | None = True
    for version in range(since + 1, table.version() + 1):
        removed = _known_days_of("remove", table, version, None)
        if removed:
            return False
        if removed is None:
            kept = None
    return kept


def days_changed(
    table: DeltaTable, partition: str, since: int, until: int | None = None
) -> set[date] | None:
    """The days of which commits have added or removed rows; None if it may be any day.

    Args:
        table: the open table.
        partition: the column with the day of a file.
        since: the version since which commits are examined.
        until: the last version that is examined; None: the table's own.
    """
    days: set[date | None] = set()
    for version in range(since + 1, (table.version() if until is None else until) + 1):
        for action in ("add", "remove"):
            days |= _days_of(action, table, version, partition)
    return None if None in days else {day for day in days if day is not None}


def _days_of(
    action: str, table: DeltaTable, version: int, partition: str | None
) -> set[date | None]:
    """The days of which a commit has added or removed rows; None among them: any day may be one."""
    days = _known_days_of(action, table, version, partition)
    return {None} if days is None else days


def _known_days_of(
    action: str, table: DeltaTable, version: int, partition: str | None
) -> set[date | None] | None:
    """The days of which a commit has added or removed rows; None if it has been cleaned up."""
    lines = _log_of(table, version)
    if lines is None:
        return None
    found = [json.loads(line).get(action) for line in lines if f'"{action}"' in line]
    return {_day_of(one, partition) for one in found if one and one.get("dataChange", True)}


def _log_of(table: DeltaTable, version: int) -> list[str] | None:
    """The actions of a version as JSON; None if they have been cleaned up."""
    try:
        with files_of(table).open_input_stream(f"_delta_log/{version:020}.json") as log:
            return list(log.read().decode().splitlines())
    except OSError:
        return None


def _day_of(file: Mapping[str, Any], partition: str | None) -> date | None:
    value = (file.get("partitionValues") or {}).get(partition)
    return None if value is None else date.fromisoformat(str(value)[:10])
