"""Files of scenarios: JSON lists of {"scenario", "expected"}, plain or gzipped."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strandline.errors import InputError

_SUFFIXES = (".json", ".json.gz")


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario with its expected result, both as parsed JSON."""

    file: str
    name: str
    scenario: Mapping[str, Any]
    expected: Mapping[str, Any]


def scenario_files(paths: Iterable[Path]) -> list[Path]:
    """The scenario files of some paths; a folder stands for all files below it, by name.

    Raises:
        InputError: a path does not exist, is not a JSON file, or is a folder without one.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.is_file() and _is_scenario_file(p))
            if not found:
                raise InputError(str(path), "no scenario in this folder", _expected_files())
            files += found
        elif not path.exists():
            raise InputError(str(path), "no such file or folder", "check the path")
        elif not _is_scenario_file(path):
            raise InputError(str(path), "not a scenario file", _expected_files())
        else:
            files.append(path)
    return files


def cases_of(paths: Iterable[Path]) -> Iterator[Case]:
    """The cases of all files of some paths; see `scenario_files` and `read_cases`."""
    for path in scenario_files(paths):
        yield from read_cases(path)


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of one file, in its order.

    Raises:
        InputError: the file cannot be read, is not JSON, or is not a list of cases.
    """
    for number, pair in enumerate(_read_list(path)):
        place = f"{path.name}: [{number}]"
        if not isinstance(pair, dict) or not {"scenario", "expected"} <= pair.keys():
            raise InputError(place, 'not a case; it lacks "scenario" or "expected"', _SHAPE)
        scenario, expected = pair["scenario"], pair["expected"]
        if not isinstance(scenario, dict) or not isinstance(expected, dict):
            raise InputError(place, '"scenario" and "expected" are not both objects', _SHAPE)
        name = scenario.get("name")
        if not isinstance(name, str) or not name:
            raise InputError(place, f"scenario.name: {name!r} is not a name", "name each scenario")
        yield Case(path.name, name, scenario, expected)


_SHAPE = 'a scenario file is a JSON list of {"scenario": {...}, "expected": {...}}'


def _expected_files() -> str:
    return "scenario files end in " + " or ".join(_SUFFIXES)


def _is_scenario_file(path: Path) -> bool:
    return path.name.endswith(_SUFFIXES)


def _read_list(path: Path) -> list[Any]:
    try:
        raw = path.read_bytes()
        content = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(path.name, f"cannot be read ({reason})", "check the file") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(path.name, f"not JSON ({error})", "correct the syntax there") from None
    if not isinstance(content, list):
        raise InputError(path.name, "is JSON, but not a list", _SHAPE)
    return content
