"""The set-based engine gives, scenario by scenario, what Flink itself gave.

On Apache Spark a fixed sample that has every setting of a scenario, unless ALL_GOLDENS is set; on
other engines all that these run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from engines import ENGINE

from strandline.conformance import ConformanceResult, cases_of, run_conformance
from strandline.conformance.on_engine import run_on_engine
from strandline.conformance.scenario import read_scenario
from strandline.conformance.spark_runner import SparkEngine
from strandline.lake.sessions.choice import EngineChoice
from strandline.spec.runnable import not_yet

pytestmark = [pytest.mark.spark, pytest.mark.story]

GOLDENS = Path(__file__).parents[2] / "golden" / "flink"
ONE_IN = 64
"""Chance chooses so few beside those that have every setting."""
SAMPLED = ENGINE == "spark" and not os.environ.get("ALL_GOLDENS")
CHAINED = {"pub_chained_009_sliding_all", "pub_chained_011_session_all"}
"""In one a threshold is on no grid, in one the source goes idle."""


def supported() -> list[dict]:
    """The goldens of what the engine has, in the order of their names."""
    found = {}
    for path in sorted(GOLDENS.glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            if not_yet(read_scenario(case["scenario"]).spec):
                continue
            found[case["scenario"]["name"]] = case
    return [found[name] for name in sorted(found)]


def settings_of(setting: Any, path: str = "") -> Iterator[str]:
    """The settings of a scenario, such as `window.kind=session`; of a number only its sign."""
    if isinstance(setting, dict):
        for name, inner in setting.items():
            if path or name not in {"name", "records"}:
                yield from settings_of(inner, f"{path}.{name}")
    elif isinstance(setting, list):
        yield f"{path}: {min(len(setting), 3)}"
    elif isinstance(setting, int) and not isinstance(setting, bool):
        yield f"{path}: {(setting > 0) - (setting < 0)}"
    else:
        yield f"{path}={setting}"


@cache
def with_every_setting() -> frozenset[str]:
    """The names of a few scenarios that together have each setting of all of them."""
    settings = {case["scenario"]["name"]: {*settings_of(case["scenario"])} for case in supported()}
    chosen: set[str] = set()
    lacking = set().union(*settings.values())
    while lacking:
        name = max(settings, key=lambda name: (len(settings[name] & lacking), name))
        chosen.add(name)
        lacking -= settings[name]
    return frozenset(chosen)


def is_chosen(name: str) -> bool:
    """Whether a scenario is asked for."""
    by_chance = not crc32(name.encode()) % ONE_IN
    return not SAMPLED or name in CHAINED | with_every_setting() or by_chance


@pytest.fixture(scope="module")
def result(session, tmp_path_factory) -> ConformanceResult:
    chosen = [case for case in supported() if is_chosen(case["scenario"]["name"])]
    path = tmp_path_factory.mktemp("goldens") / "chosen.json"
    path.write_text(json.dumps(chosen), encoding="utf-8")
    if ENGINE == "sail":
        return run_on_engine([*cases_of([path])], EngineChoice("sail"))
    return run_conformance(cases_of([path]), SparkEngine(session), at_once=4)


def test_no_scenario_disagrees_and_none_fails_to_run(result):
    assert [str(d) for d in result.disagreements] == []
    assert result.failed == {}
    assert result.passed
    assert {*result.unsupported} == {
        case["scenario"]["name"]
        for case in supported()
        if is_chosen(case["scenario"]["name"]) and not_yet(read_scenario(case["scenario"]).spec)
    }


def test_the_sample_has_windows_of_every_kind_and_both_combiners(result):
    names = " ".join(result.agreed)
    kinds = ("tumbling", "sliding", "session", "splits", "chained", "joins")
    assert all(kind in names for kind in kinds)
    assert with_every_setting() <= {*result.agreed}
    assert len(result.agreed) >= 30
