"""The staged parts that a run publishes are read as the ledgers of earlier versions have them."""

from __future__ import annotations

from dataclasses import fields
from datetime import date

from strandline.lake.ledger.to_publish import ToPublish

KEPT = {
    "key": ["device"],
    "of_windows": ["pairs"],
    "whole": ["windows"],
    "parts": ["windows", "quarantine"],
    "anew": ["quarantine"],
    "emptied": ["firings"],
    "accepted": ["2024-03-02"],
    "input": ["a-table"],
    "watermark": ["1709287199999"],
    "final_until": ["1709287200000"],
    "command": ["backfill", "--close"],
}
READ = ToPublish(
    key=("device",),
    pairs_of_windows=True,
    parts=("windows", "quarantine"),
    whole=("windows",),
    replaced=("quarantine",),
    emptied=("firings",),
    accepted=(date(2024, 3, 2),),
    input_id="a-table",
    watermark_ms=1709287199999,
    final_until_ms=1709287200000,
    command=("backfill", "--close"),
)


def test_the_names_under_which_a_ledger_keeps_it_stay():
    assert ToPublish.from_json(KEPT) == READ
    assert READ.to_json() == KEPT


def test_of_an_earlier_version_there_are_fewer_lists():
    read = ToPublish.from_json({"key": ["device"], "parts": ["windows"], "whole": []})
    assert read == ToPublish(key=("device",), parts=("windows",))


def test_a_step_that_is_written_again_keeps_each_of_its_fields():
    without = [one.name for one in fields(ToPublish) if getattr(READ, one.name) == one.default]
    assert not without
    assert ToPublish.from_json(READ.to_json()) == READ
