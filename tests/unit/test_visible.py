"""Text of others is text: it moves no cursor, turns no line around and hides nothing."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from strandline.cli import preview, show
from strandline.cli.console import TextConsole, as_json, escape, table
from strandline.cli.incomplete import _print_listed, _shown
from strandline.cli.progress import progress
from strandline.cli.read import print_rows
from strandline.errors import InputError
from strandline.quality.audit.data_docs import _escaped
from strandline.quality.report.figure import _visible
from strandline.visible import visible

HOSTILE = "a\x1b[2Jb\u202ec\u2066d\u200be\x9bf\x07g\u2028h\ri\x7fj\ufeffk\U000e0041"
SHOWN = r"a\x1b[2Jb\u202ec\u2066d\u200be\x9bf\x07g\u2028h\ri\x7fj\ufeffk\U000e0041"


def is_sent(text: str) -> bool:
    """Whether a text holds a sign that a terminal obeys, but for line breaks."""
    return any(
        unicodedata.category(sign) in {"Cc", "Cf", "Zl", "Zp"} for sign in text if sign != "\n"
    )


@pytest.fixture
def page(monkeypatch):
    """What people read, as it is sent."""
    written = io.StringIO()
    console = TextConsole(file=written, width=400, highlight=False, soft_wrap=True)
    monkeypatch.setattr(show, "out", console)
    monkeypatch.setattr(show, "err", console)
    return written


def test_a_narrow_terminal_truncates_no_value(page):
    instant = "2024-03-01T00:00:00+00:00"
    tables = (table("ended", "from", "to", first="run"), show.facts_table())
    for one in tables:
        one.add_row(*["r-1", *[instant] * 3][: len(one.columns)])
        TextConsole(file=page, width=30).print(one)
    written = "".join(page.getvalue().split())
    assert all(written.count(sign) == 4 * instant.count(sign) for sign in "T+")


@pytest.mark.parametrize("width", [30, 40, 50, 71, 72])
def test_a_narrow_terminal_cuts_nothing_of_an_incomplete_window(page, monkeypatch, width):
    monkeypatch.setattr(show, "out", TextConsole(file=page, width=width))
    start, end, why = "2024-03-02T00:00:00Z", "2024-03-03T00:00:00Z", {"sentence": "x" * 40}
    one = {"slot_start": start, "slot_end": end, "state": "zzzzzz", "share": 0.95, "why": [why]}
    _print_listed([_shown(one)], "window")
    written = page.getvalue()
    counts = {"Z": 2, "T": 2, "-": 4, "00:00:00": 2, "x": 40, "z": 6, "%": 1}
    assert {sign: written.count(sign) for sign in counts} == counts
    assert "95.0" in written


@given(st.text())
def test_nothing_but_hidden_signs_is_changed(text):
    assert not is_sent(visible(text).replace("\n", "\x00"))
    if not is_sent(text) and "\n" not in text and text.isprintable():
        assert visible(text) == text


def test_signs_are_written_out_as_python_would():
    assert visible(HOSTILE) == SHOWN
    assert visible("one\ntwo\tthree") == r"one\ntwo\tthree"
    assert visible("one\ntwo\x1b", keep="\n") == "one\ntwo\\x1b"
    assert visible("Zürich 東京 😀") == "Zürich 東京 😀"


@given(st.text(alphabet=r"\[]/b: ", max_size=8), st.sampled_from(["", "[/]", " end", "[/] end"]))
def test_a_text_of_backslashes_brackets_and_colons_is_shown_as_it_is(text, following):
    opened = "[bold]" if "[/]" in following else ""
    shown = TextConsole().render_str(f"{opened}{escape(text)}{following}").plain
    assert shown == text + following.replace("[/]", "")


def test_neither_a_line_nor_a_cell_nor_a_header_sends_a_sign(page):
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    for one in (HOSTILE, f"[bold]{escape(HOSTILE)}[/]", table):
        show.out.print(one)
    print_rows([HOSTILE], [{HOSTILE: HOSTILE}, {HOSTILE: "a\nb"}])
    assert not is_sent(page.getvalue())
    assert page.getvalue().count(SHOWN) == 7
    assert r"a\nb" in page.getvalue()


def test_neither_an_error_nor_a_step_nor_a_run_sends_a_sign(page):
    show.failure(InputError(HOSTILE, HOSTILE, "one\ntwo"), as_json=False)
    with progress(quiet=True) as step:
        step(HOSTILE)
    show.dropped({"pipeline": HOSTILE, "run_id": HOSTILE, "versions": {HOSTILE: 1}})
    assert not is_sent(page.getvalue())
    assert page.getvalue().count(SHOWN) == 6
    assert "one\ntwo" in page.getvalue()
    assert not is_sent(str(InputError(HOSTILE, HOSTILE, HOSTILE)))


def test_a_preview_sends_no_sign(page):
    change = {"how": "changed", "start": "s", "end": "e", "key": {"k": HOSTILE},
              "before": {HOSTILE: HOSTILE[:9]}, "after": {HOSTILE: "b\nc"}}  # fmt: skip
    counts = {"added": 0, "changed": 1, "removed": 0}
    quarantined = {"gained": 1, "changed": 0, "lost": 0}
    whole = {
        "days": [{"day": "2024-03-01", "windows": counts, "quarantine": quarantined}],
        "other_days": {"days": 0, "windows": counts, "quarantine": quarantined},
        "days_cut": False,
        "quarantine": {"gained": {HOSTILE: 1}},
        "windows": counts,
        "changed_in_values": 1,
        "shown": [change],
    }
    for part in preview.parts(whole):
        show.out.print(part)
    assert not is_sent(page.getvalue())
    assert r"b\nc" in page.getvalue()


def test_json_says_the_same_in_ascii():
    document = as_json({HOSTILE: HOSTILE})
    assert document.isascii()
    assert not is_sent(document)
    assert json.loads(document) == {HOSTILE: HOSTILE}


def test_neither_a_plot_nor_the_data_docs_send_a_sign():
    assert _visible({"names": [HOSTILE]}) == {"names": [SHOWN]}
    assert _escaped([{"a": HOSTILE}]) == [{"a": SHOWN}]
