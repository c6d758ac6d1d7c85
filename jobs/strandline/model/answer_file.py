"""The place to which a command writes its JSON document instead of stdout."""

from __future__ import annotations

JSON_FILE_VARIABLE = "STRANDLINE_JSON_FILE"
"""The environment variable with the file's path, or with a URI in a lake: with `--json` the
document is written there, and stdout shows the text for people.

Airflow's tasks set it: people read the log, and the task reads the document.
"""
