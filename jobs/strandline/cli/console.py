"""The console for people: text and tables, in which values from data are escaped."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, isnan
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from strandline.visible import visible

_DELETE = "\x7f"
"""The only control character that JSON in ASCII does not escape."""

_READ_AS_MARKUP = re.compile(r"\\+|\[")
"""Matches a run of backslashes, or an opening bracket: rich may read them as markup."""

_EMPTY_TAG = "[none][/none]"
"""Markup that shows nothing."""


class TextConsole(Console):
    """A console that prints no control or format characters but line breaks and its own styles."""

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError again: rich would end the command, whatever its exit code."""
        raise  # noqa: PLE0704 - rich calls it in its handler

    def render_str(self, text: str, **more: Any) -> Text:
        """A text as it is printed, in a line or in a cell of a table."""
        return super().render_str(visible(text, keep="\n"), **more | {"emoji": False})


@contextmanager
def dropping_unread(stream: TextIO) -> Iterator[None]:
    """Drops what is printed to a stream once nobody reads it any more, as with `| head -1`.

    A command then goes on, and ends as it would have, with its own exit code.
    """
    try:
        yield
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # else Python fails as it flushes at its end
        os.close(nowhere)


def escape(text: str, keep: str = "") -> str:
    """A text from data as markup that prints it literally; control characters become escapes.

    Whether rich reads a bracket or a backslash as markup depends on the next character, so an empty
    tag is put after each.

    Args:
        text: any text.
        keep: control characters that stay, such as the line breaks of a message.
    """
    return _READ_AS_MARKUP.sub(_as_text, visible(text, keep))


def _as_text(match: re.Match[str]) -> str:
    """The markup that shows backslashes, or an opening bracket."""
    return (r"\[" if match[0] == "[" else match[0] * 2) + _EMPTY_TAG


def as_json(content: Any) -> str:
    """A JSON document in ASCII, with control characters escaped.

    JSON has no numbers NaN, Infinity and -Infinity: they become strings, as in Spark's `to_json`.
    """
    written = json.dumps(_with_finite_numbers(content), default=str, indent=2, allow_nan=False)
    return written.replace(_DELETE, "\\u007f")


def _with_finite_numbers(content: Any) -> Any:
    """The content with NaN, Infinity and -Infinity as texts."""
    if isinstance(content, float) and not isfinite(content):
        return "NaN" if isnan(content) else "Infinity" if content > 0 else "-Infinity"
    if isinstance(content, Mapping):
        pairs = content.items()
        return {_with_finite_numbers(n): _with_finite_numbers(value) for n, value in pairs}
    if isinstance(content, list | tuple):
        return [_with_finite_numbers(value) for value in content]
    return content


def plain_table() -> Table:
    """A table without lines, still without columns."""
    return Table(box=None, header_style="bold", pad_edge=False)


def table(*columns: str, first: str) -> Table:
    """A table with a header; its first column is never wrapped, and the others never truncated."""
    made = plain_table()
    made.add_column(first, no_wrap=True)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made
