"""The file into which a command writes its JSON document in place of stdout."""

from __future__ import annotations

import os
from pathlib import Path

JSON_FILE_VARIABLE = "STRANDLINE_JSON_FILE"
"""The environment variable with the file's path: with `--json` the document is written into the
file, and stdout shows the text for people.

Airflow's tasks set it: people read the log, and the task reads the document.
"""


def json_file() -> Path | None:
    """The file named by the environment; None if the document goes to stdout."""
    name = os.environ.get(JSON_FILE_VARIABLE)
    return Path(name) if name else None
