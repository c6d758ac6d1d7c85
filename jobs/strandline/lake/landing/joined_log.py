"""The combined log of both landing tables of a join."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

from strandline.errors import InputError
from strandline.lake.landing.log import LandingLog
from strandline.lake.store.lake import Lake
from strandline.model.facts_of_two import id_of_two
from strandline.spec.joined import TwoSourcesSpec

_VERSIONS = 2**31
"""More versions than any table has: `left * _VERSIONS + right` is one number for both."""


@dataclass(frozen=True)
class JoinedLog(LandingLog):
    """The logs of both landing tables.

    Attributes:
        left: the log of the left table.
        right: the log of the right table.
        spec: the pipeline.
    """

    left: LandingLog
    right: LandingLog
    spec: TwoSourcesSpec

    @classmethod
    def joined(cls, lake: Lake, spec: TwoSourcesSpec) -> JoinedLog:
        """The logs of the newest versions.

        Raises:
            InputError: a table is not a Delta table, or only a catalog knows its location.
        """
        logs = {}
        for name, side in spec.sides.items():
            place = f"{spec.pipeline}: sources.{name}.table"
            if lake.is_catalog_name(side.source.table):
                way_out = "give its path below the lake, or its absolute URI"
                raise InputError(place, "a table of a catalog, not yet read in a join", way_out)
            uri = lake.resolve(side.source.table)
            logs[name] = LandingLog.open(uri, place, side.source.table)
        left, right = logs["left"], logs["right"]
        return cls(left.uri, left.table, left, right, spec)

    @property
    def of_sides(self) -> dict[str, LandingLog]:
        """The logs by side."""
        return {"left": self.left, "right": self.right}

    @cached_property
    def version(self) -> int:
        """A number made of both versions, which grows with each of them."""
        return self.left.version * _VERSIONS + self.right.version

    @cached_property
    def table_id(self) -> str:
        """The ids of both tables as one text."""
        return id_of_two(self.left.table_id, self.right.table_id)

    @property
    def is_newest(self) -> bool:
        """See `LandingLog`: whether neither of the two tables has been written again since."""
        return self.left.is_newest and self.right.is_newest

    def bytes_of(self, days_by: str | None, is_wanted: Callable[[date], bool]) -> int:
        """See `LandingLog`; each table by its own partition."""
        return sum(
            log.bytes_of(self._days_by(name), is_wanted) for name, log in self.of_sides.items()
        )

    def day_partition(self, name: str | None) -> str | None:
        """None: each of the two tables is partitioned by a column of its own."""
        return None

    def at(self, version: int) -> JoinedLog:
        """See `LandingLog`; a side whose version has been cleaned up is at its newest version."""
        of_left, of_right = divmod(version, _VERSIONS)
        left = self.left.readable_at(of_left) or self.left
        right = self.right.readable_at(of_right) or self.right
        return replace(self, table=left.table, left=left, right=right)

    def nearest_to(self, version: int) -> JoinedLog:
        """See `LandingLog`; each side by itself, as in `at`."""
        return self.at(version)

    def readable_at(self, version: int) -> JoinedLog | None:
        """See `LandingLog`; None if the version of either table has been removed."""
        versions = zip(self.of_sides.values(), divmod(version, _VERSIONS), strict=True)
        readable = all(log.readable_at(of_side) is not None for log, of_side in versions)
        return self.at(version) if readable else None

    def same_rows_since(
        self,
        version: int,
        table_id: str | None = None,
        *,
        days_by: str | None,
        last_day: date | None,
    ) -> bool:
        """See `LandingLog`: whether both tables certainly have the same rows."""
        if self.is_another(table_id):
            return False
        versions = dict(zip(("left", "right"), divmod(version, _VERSIONS), strict=True))
        return all(
            log.same_rows_since(versions[name], days_by=self._days_by(name), last_day=last_day)
            for name, log in self.of_sides.items()
        )

    def _days_by(self, name: str) -> str | None:
        source: Any = self.spec.sides[name].source
        return self.of_sides[name].day_partition(source.arrival_date)
