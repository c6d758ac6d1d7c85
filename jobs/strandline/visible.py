"""Text for people: control characters and bidirectional marks are escaped, nouns are counted."""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories: controls, formats (bidi, zero width), surrogates, separators."""
_NAMES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str, keep: str = "") -> str:
    r"""A text with control and format characters as escapes: `\x1b[31m`, `a\u202eb`.

    It is for display only; files and tables contain the unchanged values.

    Args:
        text: any text.
        keep: characters that stay, such as the line breaks of a message of several lines.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character in keep else _written_out(character) for character in text
    )


def number_of(count: int, noun: str) -> str:
    """A count with its noun: `0 records`, `1 record`, `2,000 records`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _written_out(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    form = "\\x{:02x}" if code < 0x100 else "\\u{:04x}" if code < 0x10000 else "\\U{:08x}"
    return _NAMES.get(character) or form.format(code)
