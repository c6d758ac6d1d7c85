"""A preview as people read it."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from strandline.cli.preview import parts, took


def counts(windows=(0, 0, 0), quarantine=(0, 0, 0)) -> dict[str, Any]:
    return {
        "windows": dict(zip(("added", "changed", "removed"), windows, strict=True)),
        "quarantine": dict(zip(("gained", "changed", "lost"), quarantine, strict=True)),
    }


def a_change(how="changed", key="a", **values) -> dict[str, Any]:
    sides = {
        name: {one: pair[place] for one, pair in values.items()}
        for place, name in enumerate(("before", "after"))
    }
    if how != "changed":
        sides["before" if how == "added" else "after"] = None
    start, end = "2024-03-01T00:00:00Z", "2024-03-01T01:00:00Z"
    return {"how": how, "start": start, "end": end, "key": {"k": key}, **sides}


def a_preview(shown=(), days=1, other_days=0, in_values=1, **windows) -> dict[str, Any]:
    return {
        "windows": {"added": 0, "changed": 0, "removed": 0} | windows,
        "changed_in_values": in_values,
        "shown": list(shown),
        "quarantine": {"gained": {"late": 3}, "changed": {}, "lost": {"invalid": 1}},
        "days": [{"day": f"day {n:03}", **counts((0, n, 0))} for n in range(1, days + 1)],
        "other_days": {"days": other_days, **counts((0, 5, 0))},
        "days_cut": False,
    }


def said(preview) -> list[str]:
    page = StringIO()
    console = Console(file=page, width=200, highlight=False, color_system=None)
    for part in parts(preview):
        console.print(part)
    return [" ".join(line.split()) for line in page.getvalue().splitlines()]


def test_a_changed_window_shows_each_value_that_changes_the_aggregates_first():
    change = a_change(state=("fired", "closed"), n=(3, 12_345), mean=(1.5, 1.5), gone=(None, 2.25))
    lines = said(a_preview([change], changed=1))
    (line,) = (line for line in lines if line.startswith("~"))
    assert line.endswith("a n 3 → 12,345; gone none → 2.25; state fired → closed")
    assert "windows that change: 1, of these 1 in their records or an aggregate" in " ".join(lines)


def test_windows_that_change_in_no_value_are_counted_and_shown_only_where_none_does():
    of_rules = {"spec_fingerprint": ("a1", "b2")}
    same = [a_change(key=f"same {n}", firings=(1, 2), **of_rules) for n in range(30)]
    lines = said(a_preview([a_change(n=(3, 4), **of_rules), *same], changed=31))
    changed = [line for line in lines if line.startswith("~")]
    assert [line.split("Z ")[-1] for line in changed] == ["a n 3 → 4", "~ and 30 more changed"]
    lines = said(a_preview([*same, a_change(**of_rules)], changed=31, in_values=0))
    changed = [line.split("Z ")[-1] for line in lines if line.startswith("~")]
    assert changed == [*(f"same {n} firings 1 → 2" for n in range(3)), "~ and 28 more changed"]
    (line,) = (
        one
        for one in said(a_preview([a_change(**of_rules)], changed=1, in_values=0))
        if "a1" in one
    )
    assert line.endswith("spec_fingerprint a1 → b2")


def test_a_window_that_comes_or_goes_shows_what_it_holds():
    one, other = a_change("added", n=(None, 3)), a_change("removed", n=(4, None))
    lines = said(a_preview([one, other], added=1, removed=1))
    assert [line[0] + line[-4:] for line in lines if line[0] in "+-"] == ["- n 4", "+ n 3"]


def test_what_is_not_shown_is_counted():
    shown = [a_change(key=str(n), n=(n, n + 1)) for n in range(30)]
    lines = said(a_preview(shown, changed=1_000, in_values=30, removed=7))
    assert sum(" → " in line for line in lines) == 10
    assert {"~ and 990 more changed", "- and 7 more removed"} < {*lines}


def test_the_days_that_change_most_are_shown_and_the_others_are_added_up():
    lines = said(a_preview(days=23, other_days=2))
    days = [line for line in lines if line.startswith("day 0")]
    assert days[0] == "day 004 0 4 0 0 0 0"
    assert len(days) == 20
    assert f"5 other days 0 {1 + 2 + 3 + 5} 0 0 0 0" in lines
    assert "quarantine: gained 3 late; lost 1 invalid" in lines
    assert any(line.startswith("1 other day 0 ") for line in said(a_preview(days=20, other_days=1)))


def test_nothing_that_stands_in_the_data_is_markup():
    change = a_change(key="[red]x[/]", text=("[link=x]", "[/]" + "y" * 99))
    (line,) = (line for line in said(a_preview([change], changed=1)) if line.startswith("~"))
    assert "[red]x[/] text [link=x] → [/]" + "y" * 37 + "…" in line


def test_a_run_without_a_preview_shows_none():
    assert said(None) == said(a_preview(days=0)) == []


def test_what_runs_took_is_said_of_one_and_of_several():
    assert took({"runs": 1, "records": [100, 100], "seconds": [9.5, 9.5]}) == (
        "9.5 s: the last run of this kind over 100 records, without the start of the engine"
    )
    assert "over 1 record, without" in took({"runs": 2, "records": [1, 1], "seconds": [2, 2]})
    assert took({"runs": 3, "records": [100, 2_000], "seconds": [9.5, 20]}) == (
        "9.5 to 20 s: the last 3 runs of this kind over 100 to 2,000 records, without the start of "
        "the engine"
    )
