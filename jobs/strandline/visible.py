"""Text of others as text: what controls a terminal, or the order of signs, is written out."""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of Unicode: controls, formats (bidi, zero width), halves of signs, separators."""
_NAMES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str, keep: str = "") -> str:
    r"""A text in which control and format signs are written out: `\x1b[31m`, `a\u202eb`.

    For whoever looks at it; a file or a table holds values as they are.

    Args:
        text: of whatever origin.
        keep: signs that stay, such as the line breaks of a message of several lines.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign in keep else _written_out(sign) for sign in text)


def _written_out(sign: str) -> str:
    if unicodedata.category(sign) not in _HIDDEN:
        return sign
    code = ord(sign)
    form = "\\x{:02x}" if code < 0x100 else "\\u{:04x}" if code < 0x10000 else "\\U{:08x}"
    return _NAMES.get(sign) or form.format(code)
