"""Settings that override the pipeline's file for one run, as text and as command-line options."""

from __future__ import annotations

from collections.abc import Mapping


def option_of(name: str) -> str:
    """The option that overrides a key: `--allowed-lateness` for `allowed_lateness`."""
    return f"--{name.replace('_', '-')}"


def as_options(overrides: Mapping[str, str]) -> str:
    """Overrides as options of a command, such as `--bound 4h --allowed-lateness 3h`."""
    return " ".join(f"{option_of(name)} {value}" for name, value in overrides.items())


def in_words(overrides: Mapping[str, str]) -> str:
    """Overrides as a text, such as `bound: 4h, allowed_lateness: 3h`."""
    return ", ".join(f"{name}: {value}" for name, value in overrides.items())
