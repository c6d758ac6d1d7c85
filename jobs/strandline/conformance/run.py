"""The run of scenario files on an engine, and the comparison of the results with Flink's.

A file is a JSON list of {"scenario", "expected"}, plain or gzipped.
"""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from strandline.conformance.answer import Answer, AnyAnswer, PairsAnswer
from strandline.conformance.compare import Disagreement, compare
from strandline.conformance.golden import first_mistake
from strandline.conformance.scenario import Scenario, Unsupported, read_scenario
from strandline.errors import InputError, StrandlineError
from strandline.spec.join import IntervalJoinSpec

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


_log = logging.getLogger(__name__)

Engine = Callable[[Scenario], AnyAnswer]
"""Computes the result of a scenario; may raise `Unsupported` for a feature it does not have."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one scenario.

    Attributes:
        disagreements: the differences of the results, if the verdict is `differ`.
        features: the unsupported features, if it is `unsupported`.
        failure: the error, if it is `failed`.
    """

    file: str
    scenario: str
    verdict: Literal["agreed", "differ", "unsupported", "failed"]
    disagreements: tuple[Disagreement, ...] = ()
    features: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class ConformanceResult:
    """The outcomes of all scenarios, in the order of the files."""

    outcomes: tuple[Outcome, ...]

    @property
    def agreed(self) -> list[str]:
        """The scenarios without a difference."""
        return self._names("agreed")

    @property
    def differ(self) -> list[str]:
        """The scenarios with a difference."""
        return self._names("differ")

    @property
    def unsupported(self) -> list[str]:
        """The scenarios with an unsupported feature."""
        return self._names("unsupported")

    @property
    def failed(self) -> dict[str, str]:
        """The scenarios that could not be run, with their errors."""
        return {o.scenario: o.failure for o in self.outcomes if o.verdict == "failed"}

    @property
    def unsupported_features(self) -> dict[str, list[str]]:
        """The unsupported features, with their scenarios."""
        features: dict[str, list[str]] = {}
        for outcome in self.outcomes:
            for feature in outcome.features:
                features.setdefault(feature, []).append(outcome.scenario)
        return dict(sorted(features.items()))

    @property
    def disagreements(self) -> list[Disagreement]:
        """All differences of all scenarios."""
        return [d for outcome in self.outcomes for d in outcome.disagreements]

    @property
    def passed(self) -> bool:
        """Whether nothing differs and nothing failed to run."""
        return not self.differ and not self.failed

    def _names(self, verdict: str) -> list[str]:
        return [o.scenario for o in self.outcomes if o.verdict == verdict]


def run_conformance(
    cases: Iterable[Case],
    engine: Engine,
    *,
    at_once: int = 1,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> ConformanceResult:
    """Run scenarios through an engine.

    Args:
        cases: the scenarios, as `cases_of` reads them from files.
        engine: computes the results.
        at_once: the number of scenarios at the same time, in threads.
        on_outcome: called with each outcome when it is known.
    """
    outcomes = []
    with ThreadPoolExecutor(at_once) as pool:
        for outcome in pool.map(lambda case: _run_case(case, engine), cases):
            on_outcome(outcome)
            outcomes.append(outcome)
    return ConformanceResult(tuple(outcomes))


def _run_case(case: Case, engine: Engine) -> Outcome:
    """Run one scenario; any error becomes its outcome."""
    try:
        scenario = read_scenario(case.scenario)
        expected = _expected(case, scenario)
        disagreements = tuple(compare(case.name, expected, engine(scenario)))
    except Unsupported as error:
        return Outcome(case.file, case.name, "unsupported", features=error.features)
    except StrandlineError as error:
        return Outcome(case.file, case.name, "failed", failure=str(error))
    except Exception as error:  # noqa: BLE001 - a crash is an outcome, too
        _log.debug("%s crashed", case.name, exc_info=True)
        failure = f"{type(error).__name__}: {error}"
        return Outcome(case.file, case.name, "failed", failure=failure)
    if disagreements:
        return Outcome(case.file, case.name, "differ", disagreements=disagreements)
    return Outcome(case.file, case.name, "agreed")


def _expected(case: Case, scenario: Scenario) -> AnyAnswer:
    shape = PairsAnswer if isinstance(scenario.spec, IntervalJoinSpec) else Answer
    try:
        return shape.model_validate(case.expected)
    except ValidationError as error:
        place, problem = f"{case.file}: {case.name}", f"expected.{first_mistake(error)}"
        raise InputError(place, problem, "see the format of the goldens") from None
