"""What a pipeline's published rows are laid out by: another window or key is refused. No Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from joined import COGROUP
from lakes import a_spec, land
from typer.testing import CliRunner

from strandline.cli.main import app, main
from strandline.errors import InputError
from strandline.lake.ledger.entry import Entry
from strandline.lake.ledger.ledger import Ledger
from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.lake import Lake
from strandline.model.intervals import DAY_MS, TimeRange
from strandline.pipeline.request.layout import require_same_layout
from strandline.spec import parse_spec

HOURS = a_spec()
SESSIONS = a_spec(window={"session": "1h"})
FIRST = TimeRange(0, DAY_MS)


def a_step(step: str, spec=HOURS, run_id: str = "r-1", **more) -> Entry:
    return Entry(run_id, 1, step, "advance", FIRST, DAY_MS, layout=spec.layout, **more)


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        ({"window": {"tumbling": "2h"}}, "window"),
        ({"window": {"tumbling": "1h"}}, "window"),
        ({"window": {"session": "1h"}}, "window"),
        ({"source__key": ["source"]}, "source.key"),
        ({"source__key": {"device": "upper(device)"}}, "source.key"),
    ],
    ids=["size", "offset", "kind", "key", "the key's expression"],
)
def test_another_window_or_key_is_another_pipeline(edit, place):
    for step in ("publishing", "published"):
        with pytest.raises(InputError, match=rf"meter: {place}: .*--recreate --reason"):
            require_same_layout(a_spec(**edit), PipelineState.of([a_step(step)]), recreate=False)
    require_same_layout(a_spec(**edit), PipelineState.of([a_step("published")]), recreate=True)
    require_same_layout(a_spec(**edit), PipelineState.of([a_step("rejected")]), recreate=False)


def test_the_slot_of_sessions_is_laid_out_by_and_that_of_other_windows_is_not():
    slots = a_spec(window={"session": "1h"}, quality__slot="2h")
    with pytest.raises(InputError, match=r"meter: quality.slot: 7200000 differs"):
        require_same_layout(
            slots, PipelineState.of([a_step("published", SESSIONS)]), recreate=False
        )
    require_same_layout(
        a_spec(quality__slot="2h"), PipelineState.of([a_step("published")]), recreate=False
    )


def test_aggregates_bound_lateness_and_channels_may_change():
    for edit in (
        {"aggregates": {"n": "count(*)"}},
        {"watermark__bound": "2h"},
        {"allowed_lateness": "3h"},
        {"source__channels": ["a"]},
    ):
        require_same_layout(a_spec(**edit), PipelineState.of([a_step("published")]), recreate=False)


def test_a_run_whose_publish_was_taken_back_has_laid_out_nothing():
    dropped = [a_step("publishing"), a_step("dropped")]
    require_same_layout(SESSIONS, PipelineState.of(dropped), recreate=False)


def test_a_revert_says_nothing_of_the_layout_and_the_run_before_it_counts():
    key = {"publish": {"key": ["device"]}}
    revert = replace(a_step("publishing", run_id="r-2", **key), kind="revert", layout=None)
    state = PipelineState.of([a_step("published"), revert, replace(revert, step="published")])
    require_same_layout(HOURS, state, recreate=False)
    with pytest.raises(InputError, match=r"meter: window"):
        require_same_layout(a_spec(window={"tumbling": "2h"}), state, recreate=False)


def of_sides(**keys: dict[str, str] | list[str]):
    """A cogroup with other keys of its sides."""
    sources = {name: side | {"key": keys[name]} for name, side in COGROUP["sources"].items()}
    return parse_spec(COGROUP | {"sources": sources}, origin="both.yaml")


def test_the_keys_of_both_sources_are_laid_out_by():
    plain = of_sides(left=["device"], right=["device"])
    other = of_sides(left=["device"], right={"device": "upper(device)"})
    require_same_layout(plain, PipelineState.of([a_step("published", plain)]), recreate=False)
    with pytest.raises(InputError, match=r"both: source\.key: .*upper"):
        require_same_layout(other, PipelineState.of([a_step("published", plain)]), recreate=False)
    one_source = replace(a_step("published"), layout=plain.layout | {"key": {"device": "device"}})
    named_otherwise = of_sides(left={"d": "device"}, right={"d": "device"})
    with pytest.raises(InputError, match=r"both: source\.key"):
        require_same_layout(named_otherwise, PipelineState.of([one_source]), recreate=False)


def test_what_was_published_before_the_tables_were_created_anew_counts_no_more():
    before = a_step("published", position=1, frontier_ms=2 * DAY_MS)
    noted = a_step("owed", position=2)
    again = a_step("published", run_id="r-2", position=3, frontier_ms=DAY_MS, recreated=True)
    after = a_step("published", run_id="r-3", position=4, frontier_ms=3 * DAY_MS)
    state = PipelineState.of([before, noted, again, after])
    assert [*state.published] == [again, after]
    assert state.frontier_ms == 3 * DAY_MS
    assert [*state.recreating.published] == []
    assert state.recreating.frontier_ms is None


def test_tables_that_are_created_anew_meet_whatever_else_is_published():
    elsewhere = TimeRange(9 * DAY_MS, 10 * DAY_MS)
    other = replace(a_step("published", run_id="r-2", position=2), range=elsewhere)
    mine = a_step("audited", base=1)
    assert PipelineState.of([other]).published_since(mine) == []
    assert PipelineState.of([replace(other, recreated=True)]).published_since(mine)
    assert PipelineState.of([other]).published_since(replace(mine, recreated=True))


def test_the_command_refuses_it_before_spark_and_writes_nothing(tmp_path, monkeypatch, capsys):
    from lakes import SPEC

    land(tmp_path, [])
    folder = tmp_path / "pipelines"
    folder.mkdir()
    edited = {**SPEC, "window": {"tumbling": "2h"}}
    (folder / "meter.yaml").write_text(json.dumps(edited))
    ledger = Ledger(Lake.at(str(tmp_path)).pipeline("meter"))
    ledger.append(a_step("published"), datetime.now(UTC))
    monkeypatch.setattr("strandline.lake.sessions.classic.start_classic", pytest.fail)
    at = ["--pipelines", str(folder), "--lake", str(tmp_path)]
    for command in (
        ["advance", "meter", "--to", "2024-03-02"],
        ["plan", "meter", "--to", "2024-03-02"],
    ):
        refused = CliRunner().invoke(app, [*command, *at])
        assert isinstance(refused.exception, InputError)
        assert '{"tumbling": 7200000} differs from' in str(refused.exception)
    with pytest.raises(SystemExit) as ended:
        main(["advance", "meter", "--to", "2024-03-02", "--recreate", *at])
    assert ended.value.code == 2
    assert "--recreate: no reason; say why with --reason TEXT" in capsys.readouterr().err
    assert len(ledger.entries()) == 1
