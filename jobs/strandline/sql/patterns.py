"""Regular expressions of Java, which Spark uses, as Rust, in which Sail is written, reads them."""

from __future__ import annotations

import re

_PART = re.compile(r"(?P<copied>\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<dot>\.)|(?P<end>\$)", re.DOTALL)
_FLAGS = re.compile(r"\(\?[a-zA-Z]*[msx]")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_OF_CLASSES = re.compile(r"\[|&&|--|~~")
_NO_LINE_BREAK = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_LAST_LINE_BREAK = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"


def as_rust(pattern: str) -> str:
    """A pattern with which Rust matches the texts that Java matches.

    In Java `.` matches no line break of any kind, and `$` also stands before the last one.
    """

    def part(found: re.Match[str]) -> str:
        if found["dot"]:
            return _NO_LINE_BREAK
        return _LAST_LINE_BREAK if found["end"] else found[0]

    return _PART.sub(part, pattern)


def unescaped(literal: str) -> str:
    """The text of a literal as `Operand` has it."""
    return literal[1:-1].replace("\\\\", "\\")


def has_end(pattern: str) -> bool:
    """Whether a pattern contains `$`, before which Java leaves a line break out of the match."""
    return any(found["end"] for found in _PART.finditer(pattern))


def has_class_in_class(pattern: str) -> bool:
    """Whether a class contains another one, as in `[[:alpha:]]`, or an operation on classes."""
    classes = (found[0] for found in _PART.finditer(pattern) if found[0].startswith("["))
    return any(_OF_CLASSES.search(_ESCAPED.sub("", one[1:])) for one in classes)


def has_flags(pattern: str) -> bool:
    """Whether a pattern changes what `.`, `$` or blanks mean, as by `(?s)`."""
    return _FLAGS.search(pattern) is not None
