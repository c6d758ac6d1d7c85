"""The console of people: a page of text and tables, in which text of others is only text."""

from __future__ import annotations

import json
from typing import Any

from rich import markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from strandline.visible import visible

_DELETE = "\x7f"
"""The one control sign that JSON in ASCII leaves as it is."""


class TextConsole(Console):
    """A console that sends no control or format sign but line breaks and its own styles."""

    def render_str(self, text: str, **more: Any) -> Text:
        """Any text as it is shown, in a line or in a cell of a table."""
        return super().render_str(visible(text, keep="\n"), **more)


def escape(text: str, keep: str = "") -> str:
    """Text of others for a console: none of it is markup, a control sign or, unless kept, a line.

    Args:
        text: of whatever origin.
        keep: signs that stay, such as the line breaks of a message.
    """
    return markup.escape(visible(text, keep))


def as_json(content: Any) -> str:
    """One JSON document in ASCII, which writes out control signs itself."""
    return json.dumps(content, default=str, indent=2).replace(_DELETE, "\\u007f")


def table(*columns: str, first: str) -> Table:
    """A table with a line of names; its first column is never cut."""
    made = Table(box=None, header_style="bold", pad_edge=False)
    made.add_column(first, no_wrap=True)
    for column in columns:
        made.add_column(column)
    return made
