"""How many steps of a ledger are read from its files: each once a command, whoever asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pyarrow as pa

from strandline.lake.ledger import ledger
from strandline.lake.ledger.entry import Entry, entries_of


@contextmanager
def steps_read() -> Iterator[list[int]]:
    """The positions of the steps that are read from here on, as often as they are."""
    found: list[int] = []

    def counted(rows: pa.Table) -> list[Entry]:
        steps = entries_of(rows)
        found.extend(step.position for step in steps)
        return steps

    with patch.object(ledger, "entries_of", counted):
        yield found
