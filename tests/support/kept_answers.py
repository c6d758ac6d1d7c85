"""The oracle's answers: each is computed once, and again when its code or the flights change."""

from __future__ import annotations

import fcntl
import hashlib
import json
import sys
from pathlib import Path

import flights_reference
import pandas as pd
import record_replay


def kept_answer(folder: Path, horizon_ms: int | None = None) -> flights_reference.Answer:
    """The oracle's answer as of a horizon, from a file of the folder or computed into it.

    Of two processes that ask for it at once, one computes and the other waits.
    """
    file = folder / f"{_origin(horizon_ms)}.json"
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            new = file.with_suffix(".new")
            new.write_text(json.dumps(vars(flights_reference.answer(horizon_ms))), "utf-8")
            new.rename(file)  # a process that was killed has left no half of a file
    return flights_reference.Answer(**json.loads(file.read_text("utf-8")))


def _origin(horizon_ms: int | None) -> str:
    """A hash of all that an answer follows from: the code, the flights, and what reads them."""
    found = hashlib.sha256(f"{horizon_ms} {sys.version} {pd.__version__}".encode())
    for module in (flights_reference, record_replay):
        found.update(Path(module.__file__).read_bytes())
    found.update(flights_reference.source_file().read_bytes())
    return found.hexdigest()
