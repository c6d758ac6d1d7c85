"""The JSON schema of pipeline files: it takes whatever the program takes, and knows every key."""

from __future__ import annotations

import copy
import datetime as dt
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from dear import DEAR
from hypothesis import given
from jsonschema import Draft7Validator
from spec_strategies import any_watermarks, any_windows, pipelines

from strandline.errors import InputError
from strandline.spec import parse_any
from strandline.spec.documents import document_of
from strandline.spec.schema import json_schema
from strandline.trial.file import SampleTest

ROOT = Path(__file__).parents[3]
SCHEMA = json_schema()
VALIDATOR = Draft7Validator(SCHEMA)
OF_TESTS = Draft7Validator(SampleTest.model_json_schema())
LEAST: dict[str, Any] = {
    "pipeline": "example",
    "source": {"table": "landing/t", "arrival_time": "arrived", "event_time": "happened"},
    "watermark": {"strategy": "ascending"},
    "window": {"tumbling": "1h"},
}
SIDE = LEAST["source"] | {"watermark": {"strategy": "ascending"}}
TWO = {"pipeline": "p", "sources": {"left": SIDE, "right": SIDE}}
"""What every kind of pipeline says at least."""
KINDS = {
    "plain": LEAST,
    "chained": {"pipeline": "p", "source": {"pipeline": "q"}, "window": {"tumbling": "1h"}},
    "interval": TWO | {"join": {"interval": ["-5m", "10m"]}},
    "window": TWO | {"join": {"window": {}}, "window": {"tumbling": "1h"}},
    "cogroup": TWO | {"join": {"cogroup": {}}, "window": {"session": "5m"}},
}


def as_json(value: Any) -> Any:
    """A value of YAML as editors have it: instants are texts there."""
    if isinstance(value, dict):
        return {key: as_json(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [as_json(inside) for inside in value]
    return value.isoformat() if isinstance(value, dt.date) else value


def problems(content: Any, by: Draft7Validator = VALIDATOR) -> list[str]:
    return [error.message for error in by.iter_errors(as_json(content))]


def written() -> list[Any]:
    """Every pipeline file and every YAML block of the documentation."""
    found = [pytest.param(p.read_text("utf-8"), id=p.stem) for p in ROOT.glob("pipelines/*.yaml")]
    for page in [*ROOT.glob("docs/*.md"), ROOT / "README.md"]:
        blocks = re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        found += [pytest.param(text, id=f"{page.stem}-{n}") for n, text in enumerate(blocks)]
    return found


def test_it_is_a_schema():
    Draft7Validator.check_schema(SCHEMA)
    Draft7Validator.check_schema(OF_TESTS.schema)


@pytest.mark.parametrize(
    "wrong",
    [{"rows": []}, {"rows": 3}, {"expect": {}}, {"close": "who knows"}, {"colour": "red"}],
    ids=str,
)
def test_a_wrong_test_of_a_pipeline_is_rejected(wrong):
    right = {"rows": [{"a": 1}], "as_of": "2013-01-02T00:00:00Z", "expect": {"windows": []}}
    assert problems(right, OF_TESTS) == []
    assert problems(right | wrong, OF_TESTS)


@pytest.mark.parametrize("text", written())
def test_every_yaml_of_the_project_fits_it(text):
    content = document_of(text.encode(), origin="the block")
    if "rows" in content:
        assert problems(content, OF_TESTS) == []
        return
    if "pipeline" not in content:
        content = LEAST | content | {"source": LEAST["source"] | content.get("source", {})}
    assert problems(content) == []


@DEAR
@given(content=pipelines(watermark=any_watermarks(), window=any_windows()))
def test_whatever_the_program_takes_fits_it(content):
    parse_any(content, origin="p.yaml")
    assert problems(content) == []


@pytest.mark.parametrize("content", KINDS.values(), ids=KINDS)
def test_a_wrong_key_is_rejected_wherever_it_stands(content):
    parse_any(content, origin="p.yaml")
    assert problems(content) == []
    places = list(maps_in(content))
    assert len(places) >= 3
    for place in places:
        wrong = copy.deepcopy(content)
        part = wrong
        for name in place:
            part = part[name]
        part["colour"] = "red"
        assert problems(wrong), place
        with pytest.raises(InputError, match="colour"):
            parse_any(wrong, origin="p.yaml")


def maps_in(content: Any, place: tuple[str, ...] = ()):
    """The places of the maps of a document."""
    if isinstance(content, dict):
        yield place
        for name, inside in content.items():
            yield from maps_in(inside, (*place, name))


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": {"tumbling": "1 hour"}},
        {"window": {"tumbling": "-1h"}},
        {"window": {"tumbling": "1h", "sliding": "2h"}},
        {"watermark": {"strategy": "bounded_out_of_orderness"}},
        {"watermark": {"strategy": "bounded"}},
        {"allowed_lateness": 3600},
        {"pipeline": "1st"},
        {"aggregates": {"n": None}},
        {"quality": {"max_malformed_share": {"odd": 0.1}}},
        {"quality": {"max_late_share": 2}},
        {"trigger": {"count": 0}},
        {"source": LEAST["source"] | {"channels": []}},
        {"source": LEAST["source"] | {"deduplicate": {"columns": ["a"], "within": "1d"}}},
        {"max_bytes": "lots"},
        {"process": "no function"},
        {"spark": {"a": [1]}},
    ],
    ids=str,
)
def test_what_it_rejects_the_program_rejects_too(wrong):
    content = LEAST | wrong
    assert problems(content)
    with pytest.raises(InputError):
        parse_any(content, origin="p.yaml")


def test_an_editor_shows_what_each_key_means():
    unexplained = [
        f"{name}.{key}"
        for name in ("PipelineSpec", "Source", "Side", "Quality", "BoundedOutOfOrderness")
        for key, schema in SCHEMA["$defs"][name]["properties"].items()
        if not schema.get("description") and key not in {"strategy", "watermark", "source"}
    ]
    assert unexplained == []
    source = SCHEMA["$defs"]["Source"]["properties"]
    assert source["arrival_date"]["description"] == (
        "the partition column with the UTC day of arrival, which prunes reads; null: the table "
        "has none."
    )
    assert SCHEMA["$defs"]["Tumbling"]["description"].startswith("`{tumbling: SIZE")


def test_it_is_printed_without_an_engine_and_at_once():
    began = time.process_time()
    json_schema()
    assert time.process_time() - began < 0.5
    program = (
        "import sys; from strandline.cli.main import app; app(['schema'], standalone_mode=False);"
        "assert not {'pyspark', 'deltalake', 'pandas'} & set(sys.modules), sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert json.loads(done.stdout) == SCHEMA
