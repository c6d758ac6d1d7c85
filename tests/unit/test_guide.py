"""The documentation: its YAML is valid, its figures are computed, its links lead somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from strandline.spec import PipelineSpec, parse_any, parse_spec
from strandline.spec.chained import ChainedSpec
from strandline.spec.documents import document_of
from strandline.spec.loading import TEST_SUFFIX, load_spec
from strandline.trial.file import read_test
from strandline.trial.run import run_test

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
LEAST: dict[str, Any] = {
    "pipeline": "example",
    "source": {"table": "landing/t", "arrival_time": "arrived", "event_time": "happened"},
    "watermark": {"strategy": "ascending"},
    "window": {"tumbling": "1h"},
}


def blocks(*, of_tests: bool = False) -> list[Any]:
    """Every YAML block: a pipeline, or some keys of one; or each that is a pipeline's test."""
    found = []
    for page in PAGES:
        texts = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for number, text in enumerate(texts):
            if text.startswith("rows:") == of_tests:
                found.append(pytest.param(text, id=f"{page.stem}-{number}"))
    return found


def as_spec(text: str) -> PipelineSpec | ChainedSpec:
    content = document_of(text.encode(), origin="the block")
    if "pipeline" in content.get("source", {}):
        return cast("ChainedSpec", parse_any(content, origin="the block"))
    if "pipeline" not in content:
        source = {**LEAST["source"], **content.get("source", {})}
        content = {**LEAST, **content, "source": source}
    return parse_spec(content, origin="the block")


@pytest.mark.parametrize("text", blocks())
def test_every_yaml_of_the_documentation_is_a_valid_pipeline_or_part_of_one(text):
    as_spec(text)


@pytest.mark.parametrize("text", blocks(of_tests=True))
def test_every_test_of_a_pipeline_in_the_documentation_passes(text, tmp_path):
    (tmp_path / "flights.test.yaml").write_text(text)
    spec = load_spec(ROOT / "pipelines" / "flights.yaml")
    assert run_test(spec, read_test(tmp_path / "flights.test.yaml")).differences == []


def test_the_tests_beside_the_example_pipelines_pass():
    tests = [*(ROOT / "pipelines").glob(f"*{TEST_SUFFIX}")]
    assert tests
    for path in tests:
        spec = load_spec(path.with_name(path.name.removesuffix(TEST_SUFFIX) + ".yaml"))
        assert run_test(spec, read_test(path)).differences == []


def test_every_strategy_and_every_kind_of_window_has_an_example():
    every = [as_spec(block.values[0]) for block in blocks()]
    specs = [spec for spec in every if isinstance(spec, PipelineSpec)]
    assert len(specs) < len(every)
    told = {spec.watermark.strategy for spec in specs}
    assert told == {
        *("bounded_out_of_orderness", "legacy_bounded_out_of_orderness", "ascending"),
        *("legacy_ascending", "punctuated", "expression", "time_lag", "ingestion", "none"),
    }
    assert {type(spec.window).__name__ for spec in specs} == {
        *("Tumbling", "Sliding", "Cumulative", "Session"),
    }
    assert {getattr(spec.window, "gap_ms", 0) is None for spec in specs} == {True, False}
    assert any(spec.watermark.idleness_in_effect for spec in specs)
    assert any(spec.source.deduplicate for spec in specs)
    assert any(spec.firings for spec in specs)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_are_what_the_reference_computes(page, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "scripts"), *sys.path])
    from guide_figures import drawn

    text = page.read_text(encoding="utf-8")
    assert drawn(text) == text, "run: python scripts/guide_figures.py"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_the_documentation_leads_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
