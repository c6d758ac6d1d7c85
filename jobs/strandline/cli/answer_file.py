"""The file that has the JSON document of a command in place of stdout."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "STRANDLINE_JSON_FILE"
"""Names the file: with `--json` the document is written there, and stdout has the page for people.

Airflow's tasks set it: their log is read by people, the document by the task.
"""


def named_file() -> Path | None:
    """The file that the environment names; None: the document goes to stdout."""
    name = os.environ.get(VARIABLE)
    return Path(name) if name else None
