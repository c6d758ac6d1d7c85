"""The parts of a staging that a run publishes, as its steps in the ledger have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from strandline.tables import PublishedTable, tables_of


@dataclass(frozen=True)
class ToPublish:
    """The staged parts that a run publishes, how, and of which input they were made.

    Attributes:
        key: the names of the pipeline's key columns.
        pairs_of_windows: whether its pairs are pairs of windows.
        parts: the names of the tables with a staged part, in the order of publishing.
        whole: the tables whose part has all rows to insert, and is no diff.
        replaced: the tables whose rows are all replaced.
        emptied: the tables that publishing empties.
        accepted: the arrival days whose missing rows it accepts.
        input_id: the identity of the input; None: a revert, or an earlier version of the program.
        watermark_ms: of a run with overridden rules the watermark by them at its data cut-off;
            None: another run, or an earlier version of the program.
        final_until_ms: of a run with overridden rules by an earlier version of the program, the
            start of the first window that was not final by them; this version computes none.
        command: the words of the command that makes the run, without its pipeline; None: a revert,
            or an earlier version of the program.
    """

    key: Sequence[str] = ()
    pairs_of_windows: bool = False
    parts: Sequence[str] = ()
    whole: Sequence[str] = ()
    replaced: Sequence[str] = ()
    emptied: Sequence[str] = ()
    accepted: Sequence[date] = ()
    input_id: str | None = None
    watermark_ms: int | None = None
    final_until_ms: int | None = None
    command: Sequence[str] | None = None

    @classmethod
    def from_json(cls, kept: Mapping[str, Sequence[str]]) -> ToPublish:
        """The value in a ledger; earlier versions of the program have written fewer lists."""

        def of(name: str) -> tuple[str, ...]:
            return tuple(kept.get(name, ()))

        return cls(
            key=of("key"),
            pairs_of_windows="pairs" in of("of_windows"),
            parts=of("parts"),
            whole=of("whole"),
            replaced=of("anew"),
            emptied=of("emptied"),
            accepted=tuple(map(date.fromisoformat, of("accepted"))),
            input_id=next(iter(of("input")), None),
            watermark_ms=next(map(int, of("watermark")), None),
            final_until_ms=next(map(int, of("final_until")), None),
            command=of("command") if "command" in kept else None,
        )

    def to_json(self) -> dict[str, Any]:
        """The value as lists of texts, as the ledger keeps it."""
        command = {} if self.command is None else {"command": [*self.command]}
        return command | {
            "key": [*self.key],
            "of_windows": ["pairs"] if self.pairs_of_windows else [],
            "whole": [*self.whole],
            "parts": [*self.parts],
            "anew": [*self.replaced],
            "emptied": [*self.emptied],
            "accepted": [day.isoformat() for day in self.accepted],
            "input": [] if self.input_id is None else [self.input_id],
            "watermark": [] if self.watermark_ms is None else [str(self.watermark_ms)],
            "final_until": [] if self.final_until_ms is None else [str(self.final_until_ms)],
        }

    @property
    def tables(self) -> dict[str, PublishedTable]:
        """The tables of the run."""
        return tables_of(self.key, pairs_of_windows=self.pairs_of_windows)
