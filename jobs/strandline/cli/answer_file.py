"""The place to which a command writes its JSON document instead of stdout."""

from __future__ import annotations

import os

JSON_FILE_VARIABLE = "STRANDLINE_JSON_FILE"
"""The environment variable with the file's path, or with a URI in a lake: with `--json` the
document is written there, and stdout shows the text for people.

Airflow's tasks set it: people read the log, and the task reads the document.
"""


def json_place() -> str | None:
    """The path or URI named by the environment; None if the document goes to stdout."""
    return os.environ.get(JSON_FILE_VARIABLE) or None
