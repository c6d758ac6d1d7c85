"""What a run goes by in place of the pipeline's file, as people read it and as they type it."""

from __future__ import annotations

from collections.abc import Mapping


def option_of(name: str) -> str:
    """The option that overrides a key: `--allowed-lateness` of `allowed_lateness`."""
    return f"--{name.replace('_', '-')}"


def as_typed(overrides: Mapping[str, str]) -> str:
    """The options of a command, such as `--bound 4h --allowed-lateness 3h`."""
    return " ".join(f"{option_of(name)} {value}" for name, value in overrides.items())


def in_words(overrides: Mapping[str, str]) -> str:
    """Such as `bound: 4h, allowed_lateness: 3h`."""
    return ", ".join(f"{name}: {value}" for name, value in overrides.items())
