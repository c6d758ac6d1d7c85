"""Operations on texts with another result on Sail than on Spark; see `types_on_sail`.

Spark reads regular expressions as Java does, and Sail, which is written in Rust, as Rust does.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from strandline.sql.column_types import Problem
from strandline.sql.operations import Operation

_POSIX = "Alnum|Alpha|ASCII|Blank|Cntrl|Digit|Graph|Lower|Print|Punct|Space|Upper|XDigit"
_OWN_WORDS = re.compile(rf"\\[bdhqsvw<>]|\\p\{{\^?(?:{_POSIX})\}}", re.IGNORECASE)
"""Parts of regular expressions that Java limits to ASCII, or reads differently, as `\\<`."""
_ESCAPED = r"(?:[^{0}]|{0}[%_{0}])*"
"""Matches patterns of LIKE that Spark accepts; {0} is the escape character."""
_PLAIN = re.compile(r"(?:[^\\$]|\$[0-9](?![0-9A-Za-z_]))*", re.DOTALL)
"""Matches replacements that Java and Rust read in the same way."""
_TESTS = ("regexp", "regexp_like", "rlike")
"""Functions that only say whether a regular expression matches."""
_MATCHING = (
    *(*_TESTS, "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_replace"),
    *("regexp_substr", "split"),
)
"""Functions of a regular expression."""
_PART = re.compile(r"(?P<copied>\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<dot>\.)|(?P<end>\$)", re.DOTALL)
_FLAGS = re.compile(r"\(\?[a-zA-Z-]")
_NO_LINE_BREAK = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_ESCAPED_CHARACTER = re.compile(r"\\.", re.DOTALL)
_OF_CLASSES = re.compile(r"\[|&&|--|~~")
_REPEATED = re.compile(r"(?:[*+?]|\{\d*,?\d*\})(?:[*+{]|\?[*+?{])")
"""Matches what repeats a repetition, such as `a++`, which gives nothing back in Java."""
_NAMED = re.compile(r"\\(?:[pP](?:[A-Z]|\{(?:[A-Z][a-z]?|Is[A-Z][a-z]+)\})|x\{[0-9A-Fa-f]+\})")
"""Matches characters by number, category or script, such as `\\p{Lu}`, the same for both."""
_OF_RUST = re.compile(r"(?<!\\)(?:\\\\)*\\(?:[pPU]|u\{)")
_OF_JAVA = re.compile(r"(?<!\\)(?:\\\\)*\\[0-9GNRXZcek]")
_GROUP_OF_JAVA = re.compile(r"\(\?(?:[=!>]|<[=!])")
"""Matches what looks ahead or behind, and a group that gives nothing back."""
_OF_EACH_MATCH = {"regexp_count", "regexp_extract_all", "regexp_replace", "split"}
"""Functions of each match of a regular expression, and not of the first one."""
_GROUP = re.compile(r"\([^()]*\)")
_AT_THE_START = re.compile(r"\^(?![*+?{])[^|]*")
"""Matches patterns without groups that match once, at the start of a text."""
_LAST_LINE_BREAK = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"


def _like(operation: Operation) -> Problem | None:
    """LIKE with a pattern that is no literal, or that Spark refuses for what it escapes."""
    literals = [one.literal for one in operation.operands]
    pattern, escape = (*literals[1:], r"'\\'")[:2] if literals[1:] else (None, None)
    if pattern is None or escape is None:
        return "may read the pattern differently", "it as a literal"
    escaped = _ESCAPED.format(re.escape(unescaped(escape)))
    if not re.fullmatch(escaped, unescaped(pattern), re.DOTALL):
        instead = f"{unescaped(escape)} before %, _ and itself only"
        return "takes an escape that Spark refuses", instead
    return None


def _regular_expression(operation: Operation) -> Problem | None:
    """The problem of a regular expression that Sail reads differently from Spark; None: none."""
    if len(operation.operands) < 2:
        return None
    pattern = operation.operands[1].literal
    if pattern is None:
        return "may read the regular expression differently", "it as a literal"
    if _OWN_WORDS.search(pattern) or pattern in {"''", '""'}:
        return "matches other digits, words and blanks", "[0-9], [A-Za-z0-9_], [ ]"
    value = unescaped(pattern)
    if _has_class_in_class(value):
        return "reads [, &&, -- and ~~ inside of […] differently", r"[A-Za-z] for [[:alpha:]], \["
    plain = _PART.sub("_", value)
    if _FLAGS.search(plain):
        return "reads flags differently", "lower(s), and the pattern without (?i)"
    if _REPEATED.search(plain) or _OF_RUST.search(_NAMED.sub("", value)):
        return "reads a++, a{2}{3} and some escapes differently", r"(?:a{2}){3}, \p{L}"
    is_empty = operation.name in _OF_EACH_MATCH and _may_be_empty(value)
    if is_empty is None or _OF_JAVA.search(value) or _GROUP_OF_JAVA.search(plain):
        return "does not know all escapes and groups of Java", r"[\r\n] for \R, (a) for (?<=a)"
    if is_empty and (operation.name == "split" or not _is_at_the_start(plain)):
        return "finds different empty matches", "a+ for a*"
    if _takes_the_match(operation) and any(one["end"] for one in _PART.finditer(value)):
        return "finds the ends of lines elsewhere", "the pattern without $"
    put = operation.written(2)
    if operation.name == "regexp_replace" and (put is None or not _PLAIN.fullmatch(put)):
        return "reads the replacement differently", "text and $1, with no letter or digit after it"
    return None


def _is_at_the_start(plain: str) -> bool:
    """Whether a pattern matches once, at the start of a text, as `^(a|b)?` does and `^a?|b` not."""
    before = ""
    while plain != before:
        plain, before = _GROUP.sub("_", plain), plain
    return _AT_THE_START.fullmatch(plain) is not None


def _takes_the_match(operation: Operation) -> bool:
    """Whether the end of a match matters: not where one is only looked for, or gives a group."""
    group = operation.operands[2].literal if len(operation.operands) == 3 else "1"
    is_group = operation.name == "regexp_extract" and group not in {"0", None}
    return operation.name not in _TESTS and not is_group


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


def _may_be_empty(pattern: str) -> bool | None:
    r"""Whether a pattern may match the empty text, as `a*`; None: Rust may not read it, as `\R`."""
    try:
        plain = _NAMED.sub("x", pattern).replace("(?<", "(?P<").replace("\\z", "\\Z")
        return re.match(plain, "") is not None
    except re.error:
        return None


def _has_class_in_class(pattern: str) -> bool:
    """Whether a class contains another one, as in `[[:alpha:]]`, or an operation on classes."""
    classes = (found[0] for found in _PART.finditer(pattern) if found[0].startswith("["))
    return any(_OF_CLASSES.search(_ESCAPED_CHARACTER.sub("", one[1:])) for one in classes)


_Rules = dict[str, Callable[[Operation], Problem | None]]
REGULAR: _Rules = dict.fromkeys(_MATCHING, _regular_expression)
"""The rules for regular expressions."""
PATTERNS: _Rules = {**REGULAR, "ilike": _like, "like": _like}
"""The rules for regular expressions, and for the patterns of LIKE."""
