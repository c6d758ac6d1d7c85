"""The contract of the command and its callers: options, the id of a run, the file of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

JSON_FILE_VARIABLE = "STRANDLINE_JSON_FILE"
"""The environment variable with the file's path, or with a URI in a lake: with `--json` the
document is written there, and stdout shows the text for people.

Airflow's tasks set it: people read the log, and the task reads the document.
"""


def option_of(name: str) -> str:
    """The option that overrides a key: `--allowed-lateness` for `allowed_lateness`."""
    return f"--{name.replace('_', '-')}"


def as_options(overrides: Mapping[str, str]) -> str:
    """Overrides as options of a command, such as `--bound 4h --allowed-lateness 3h`."""
    return " ".join(f"{option_of(name)} {value}" for name, value in overrides.items())


def in_words(overrides: Mapping[str, str]) -> str:
    """Overrides as a text, such as `bound: 4h, allowed_lateness: 3h`."""
    return ", ".join(f"{name}: {value}" for name, value in overrides.items())


def shared_id(run_key: str) -> str:
    """The common prefix of the ids of all attempts of a caller's run, such as `1f0c5a9be2`."""
    return sha256(run_key.encode()).hexdigest()[:10]
