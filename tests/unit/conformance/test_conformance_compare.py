"""The comparison sees every disagreement, and none where only the order differs."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from strandline.conformance.answer import Answer, FiringRow
from strandline.conformance.compare import compare
from strandline.conformance.reference_runner import answer_by_reference
from strandline.conformance.run import Outcome, cases_of, run_conformance
from strandline.conformance.scenario import Unsupported

GOLDENS = Path(__file__).parents[2] / "golden" / "flink"


def goldens(kind: str) -> list[dict[str, Any]]:
    files = sorted(GOLDENS.glob(f"{kind}_*.json"))
    return [pair for path in files for pair in json.loads(path.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def pair() -> dict[str, Any]:
    """A golden with every section filled but `no_window` and `valve_status`."""
    for candidate in goldens("random"):
        expected = candidate["expected"]
        if expected["late"] and expected["open_at_end"] and len(expected["firings"]) > 5:
            return candidate
    raise AssertionError


def differences(pair: dict[str, Any], change: Any) -> list[tuple[str, Any, Any]]:
    expected = copy.deepcopy(pair["expected"])
    change(expected)
    told = Answer.model_validate(expected)
    got = Answer.model_validate(pair["expected"])
    return [(d.field, d.expected, d.got) for d in compare("one", told, got)]


def test_an_answer_agrees_with_itself(pair):
    assert differences(pair, lambda _: None) == []


def test_the_order_of_rows_means_nothing(pair):
    def shuffle(expected: dict[str, Any]) -> None:
        chance = random.Random(7)
        for section in ("firings", "late", "final", "open_at_end", "no_window"):
            chance.shuffle(expected[section])

    assert differences(pair, shuffle) == []


def test_firings_without_ids_are_compared_without_ids(pair):
    def forget(expected: dict[str, Any]) -> None:
        for section in ("firings", "final", "open_at_end"):
            for row in expected[section]:
                del row["ids"]

    assert differences(pair, forget) == []


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        ("firings", "count", 999),
        ("firings", "sum", 999),
        ("firings", "ids", [999]),
        ("firings", "watermark", 999),
        ("firings", "arrival_ms", 10**15),
        ("firings", "after_record_id", 999),
        ("firings", "cause", "end"),
        ("late", "watermark", 999),
        ("final", "count", 999),
        ("final", "ids", [999]),
        ("open_at_end", "end_passed", None),
        ("open_at_end", "sum", 999),
        ("watermarks", "watermark", 999),
        ("watermarks", "at_arrival_ms", 999),
    ],
)
def test_a_changed_field_is_one_disagreement_with_its_name(pair, section, field, value):
    def change(expected: dict[str, Any]) -> None:
        row = expected[section][-1]
        row[field] = (not row[field]) if value is None else value

    ((name, told, got),) = differences(pair, change)
    assert name.startswith(f"{section}[")
    assert name.endswith(f".{field}")
    assert told != got
    assert value is None or told == value


@pytest.mark.parametrize("section", ["firings", "late", "final", "open_at_end", "watermarks"])
def test_a_missing_row_is_one_disagreement_with_nothing_on_its_side(pair, section):
    lost = pair["expected"][section][-1]
    ((name, told, got),) = differences(pair, lambda expected: expected[section].pop())
    assert name.startswith(f"{section}[")
    assert told is None
    assert got.items() <= lost.items()


def test_a_record_without_window_is_compared_by_its_id(pair):
    assert differences(pair, lambda expected: expected["no_window"].append(7)) == [
        ("no_window[7]", 7, None)
    ]


def test_another_final_watermark_is_told(pair):
    final = pair["expected"]["final_watermark"]
    assert differences(pair, lambda expected: expected.update(final_watermark=1)) == [
        ("final_watermark", 1, final)
    ]


def test_sections_that_an_engine_does_not_tell_are_not_compared(pair):
    told = Answer.model_validate(pair["expected"])
    silent = told.model_copy(update={"watermarks": None, "valve_status": None})
    assert compare("one", told, silent) == []


def test_a_disagreement_reads_as_a_line(pair):
    told = Answer.model_validate(pair["expected"])
    (line,) = compare("one", told, told.model_copy(update={"final_watermark": 5}))
    assert str(line) == f"one: final_watermark: expected {told.final_watermark}, got 5"


@pytest.mark.parametrize(
    ("kind", "section", "field", "value"),
    [
        ("triggers", "firings", "timer", 999),
        ("evictors", "firings", "timer", 999),
        ("joins", "pairs", "ts", 999),
        ("joins", "pairs", "watermark", 999),
        ("joins", "input_watermarks", "watermark", 999),
        ("joins", "late", "input", "middle"),
        ("joins", "firings", "left", [999]),
        ("joins", "final", "right", [999]),
        ("chained", "then/firings", "count", 999),
        ("chained", "then/firings", "seqs", [999]),
        ("chained", "then/late", "watermark", 999),
        ("chained", "then/open_at_end", "end_passed", "no"),
    ],
)
def test_what_only_further_kinds_tell_is_compared_too(tmp_path, kind, section, field, value):
    for golden in goldens(kind):
        rows: Any = golden["expected"]
        for part in section.split("/"):
            rows = rows.get(part, [])
        if rows:
            rows[0][field] = value if value != "no" else not rows[0][field]
            break
    outcome = verdict(write(tmp_path / "x.json", golden))
    assert outcome.verdict == "differ"
    assert {f".{field}" in d.field for d in outcome.disagreements} == {True}


def test_a_record_that_is_kept_no_longer_is_told(tmp_path):
    golden = next(g for g in goldens("joins") if g["expected"].get("buffered", {}).get("left"))
    gone = golden["expected"]["buffered"]["left"].pop()
    (one,) = verdict(write(tmp_path / "x.json", golden)).disagreements
    assert (one.field, one.expected, one.got) == (f"buffered.left[{gone}]", None, gone)


# ------------------------------------------------------------------------------------------- runs


def write(path: Path, *pairs: Any) -> Path:
    path.write_text(json.dumps(pairs), encoding="utf-8")
    return path


def verdict(path: Path, engine: Any = answer_by_reference) -> Outcome:
    (outcome,) = run_conformance(cases_of([path]), engine).outcomes
    return outcome


def test_a_wrong_golden_makes_the_run_differ(tmp_path, pair):
    wrong = copy.deepcopy(pair)
    wrong["expected"]["firings"][0]["sum"] += 1
    result = run_conformance(
        cases_of([write(tmp_path / "x.json", pair, wrong)]), answer_by_reference
    )
    assert len(result.agreed) == len(result.differ) == 1
    assert [d.field.split(".")[-1] for d in result.disagreements] == ["sum"]
    assert not result.passed


def test_a_crash_is_an_outcome_and_the_others_still_run(tmp_path, pair):
    calls = []

    def engine(scenario: Any) -> Answer:
        calls.append(scenario.name)
        if len(calls) == 1:
            msg = "boom"
            raise ZeroDivisionError(msg)
        return answer_by_reference(scenario)

    result = run_conformance(cases_of([write(tmp_path / "x.json", pair, pair)]), engine)
    assert [o.verdict for o in result.outcomes] == ["failed", "agreed"]
    assert list(result.failed.values()) == ["ZeroDivisionError: boom"]
    assert not result.passed


def test_a_broken_scenario_and_a_broken_answer_fail_with_the_place(tmp_path, pair):
    broken = copy.deepcopy(pair)
    del broken["scenario"]["records"]
    outcome = verdict(write(tmp_path / "x.json", broken))
    assert outcome.verdict == "failed"
    assert "records: Field required" in outcome.failure
    broken = copy.deepcopy(pair)
    del broken["expected"]["late"]
    outcome = verdict(write(tmp_path / "x.json", broken))
    assert outcome.verdict == "failed"
    assert "expected.late: Field required" in outcome.failure


def test_unsupported_scenarios_are_counted_by_feature_and_do_not_fail(tmp_path, pair):
    foreign = copy.deepcopy(pair)
    foreign["scenario"]["window"] = {"kind": "lunar"}
    foreign["scenario"]["evictor"] = {"kind": "random", "n": 2}
    told: list[Outcome] = []
    path = write(tmp_path / "x.json", foreign)
    result = run_conformance(cases_of([path]), answer_by_reference, on_outcome=told.append)
    name = pair["scenario"]["name"]
    assert result.unsupported == [name]
    assert result.unsupported_features == {
        "evictor.kind: random": [name],
        "window.kind: lunar": [name],
    }
    assert result.passed
    assert told == list(result.outcomes)


def test_what_flinks_defect_has_lost_may_be_there_but_nothing_else_may_differ():
    told = {"key": "k", "start": 0, "end": 15, "watermark": 99, "arrival_ms": 3}
    fired = FiringRow(**told, count=1, sum=15, ids=[2], after_record_id=3, cause="record")
    whole = fired.model_copy(update={"count": 3, "sum": 35, "ids": [0, 1, 2]})
    answer = Answer(
        firings=[fired], late=[], no_window=[], final=[], open_at_end=[], final_watermark=99
    )
    got = answer.model_copy(update={"firings": [whole]})
    assert compare("s", answer, got) != []
    defect = answer.model_copy(update={"flink_defect": True})
    assert compare("s", defect, got) == []
    less = whole.model_copy(update={"ids": [0, 1]})
    assert compare("s", defect, answer.model_copy(update={"firings": [less]})) != []
    other = whole.model_copy(update={"watermark": 98})
    assert compare("s", defect, answer.model_copy(update={"firings": [other]})) != []


def test_an_engine_may_find_a_scenario_unsupported_itself(tmp_path, pair):
    def engine(_: Any) -> Answer:
        feature = "event times outside the years 0001 to 9999"
        raise Unsupported(feature)

    assert verdict(write(tmp_path / "x.json", pair), engine).verdict == "unsupported"
