"""Operations on texts with another result on Sail than on Spark; see `types_on_sail`.

Spark reads regular expressions as Java does, and Sail, which is written in Rust, as Rust does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from strandline.sql.column_types import FLOATS, Problem, is_decimal, is_nested
from strandline.sql.operations import Operand, Operation

_POSIX = "Alnum|Alpha|ASCII|Blank|Cntrl|Digit|Graph|Lower|Print|Punct|Space|Upper|XDigit"
_OWN_WORDS = re.compile(rf"\\[bdhqsvw<>]|\\p\{{\^?(?:{_POSIX})\}}", re.IGNORECASE)
"""Parts of regular expressions that Java limits to ASCII, or reads otherwise, as `\\<`."""
_ESCAPED = r"(?:[^{0}]|{0}[%_{0}])*"
"""Matches patterns of LIKE that Spark takes, with the sign that escapes."""
_PLAIN = re.compile(r"(?:[^\\$]|\$[0-9](?![0-9A-Za-z_]))*", re.DOTALL)
"""Matches replacements that Java and Rust read in the same way."""
_TESTS = ("regexp", "regexp_like", "rlike")
"""Functions that only say whether a regular expression matches."""
MATCHING = (
    *(*_TESTS, "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_replace"),
    *("regexp_substr", "split"),
)
"""Functions of a regular expression."""
JOINS = ("||", "concat", "concat_ws", "format_string", "listagg", "printf", "string_agg")
"""Operations that convert operands of any type to text."""
OF_TEXTS = (
    *("array_join", "ascii", "base64", "bit_length", "btrim", "char_length", "character_length"),
    *("contains", "crc32", "encode", "endswith", "find_in_set", "instr", "len", "length"),
    *("levenshtein", "locate", "lower", "lpad", "ltrim", "md5", "octet_length", "position"),
    *("repeat", "replace", "reverse", "rpad", "rtrim", "sha", "sha1", "sha2", "split_part"),
    *("startswith", "substring_index", "translate", "trim", "upper"),
)
"""Functions of texts that also accept numbers and times."""
_CAST_FIRST = {"cast", "left", "right", "substring"}
"""Operations that take the text of a time that a CAST gives."""
BYTES_AS_TEXT = (
    *("btrim", "contains", "endswith", "lower", "lpad", "ltrim", "overlay", "reverse", "rpad"),
    *("rtrim", "startswith", "trim", "upper"),
)
"""Functions that Sail computes for BINARY as if it were text."""
BOOLEANS = {"true", "t", "yes", "y", "1", "false", "f", "no", "n", "0"}
"""The texts that both engines read as BOOLEAN; Sail also reads `on` and `tru`."""
_OF_ALL_SIGNS = {"utf-8", "utf-16be", "utf-16le"}
"""The charsets in which both engines write the same bytes."""
_PART = re.compile(r"(?P<copied>\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<dot>\.)|(?P<end>\$)", re.DOTALL)
_FLAGS = re.compile(r"\(\?[a-zA-Z-]")
_NO_LINE_BREAK = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_ESCAPED_SIGN = re.compile(r"\\.", re.DOTALL)
_OF_CLASSES = re.compile(r"\[|&&|--|~~")
_REPEATED = re.compile(r"(?:[*+?]|\{\d*,?\d*\})(?:[*+{]|\?[*+?{])")
"""Matches what repeats a repetition, such as `a++`, which gives nothing back in Java."""
_NAMED = re.compile(r"\\(?:[pP](?:[A-Z]|\{(?:[A-Z][a-z]?|Is[A-Z][a-z]+)\})|x\{[0-9A-Fa-f]+\})")
"""Matches signs by number, category and script, such as `\\p{Lu}`: the same ones for both."""
_OF_RUST = re.compile(r"(?<!\\)(?:\\\\)*\\(?:[pPU]|u\{)")
_OF_EACH_MATCH = {"regexp_count", "regexp_extract_all", "regexp_replace", "split"}
"""Functions of each match of a regular expression, and not of the first one."""
_AT_THE_START = re.compile(r"\^(?![*+?{])[^|]*", re.DOTALL)
"""Matches patterns that match once, at the start of a text."""
_LAST_LINE_BREAK = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"


def to_text(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Texts of floating-point numbers, times and nested values."""
    if any((kind or "").removeprefix("array<").rstrip(">") in FLOATS for kind in types):
        return "writes floating point otherwise", "CAST(CAST(x AS DECIMAL(38, 6)) AS STRING)"
    if operation.name not in _CAST_FIRST and any(
        (kind or "").startswith("timestamp") for kind in types
    ):
        return "writes times otherwise", "CAST(t AS STRING)"
    if operation.name == "cast" and any(map(is_nested, types)):
        return "writes nulls otherwise", "array_join(a, ',')"
    if operation.name in {"format_string", "printf"}:
        if any(map(is_decimal, types)):
            return "rounds halves otherwise", "CAST(x AS STRING)"
        if "boolean" in types:
            return "writes null as false", "CAST(x AS STRING)"
    return None


def to_boolean(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """BOOLEAN of texts, of which Sail reads more than Spark."""
    literal = operation.operands[0].literal
    if types != ["string"] or (literal is not None and unescaped(literal).lower() in BOOLEANS):
        return None
    return "reads some texts that Spark does not", "lower(s) = 'true'"


def like(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """LIKE with a pattern that is no literal, or that Spark refuses for what it escapes."""
    pattern, *signs = (one.literal for one in operation.operands[1:])
    sign = signs[0] if signs else r"'\\'"
    if pattern is None or sign is None:
        return "may read the pattern otherwise", "it as a literal"
    escaped = _ESCAPED.format(re.escape(unescaped(sign)))
    if not re.fullmatch(escaped, unescaped(pattern), re.DOTALL):
        return (
            "takes an escape that Spark refuses",
            f"{unescaped(sign)} before %, _ and itself only",
        )
    return None


def regular_expression(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """A regular expression, which Sail reads as Rust does."""
    if len(operation.operands) < 2:
        return None
    pattern = operation.operands[1].literal
    if pattern is None:
        return "may read the regular expression otherwise", "it as a literal"
    if _OWN_WORDS.search(pattern) or pattern in {"''", '""'}:
        return "matches other digits, words and blanks", "[0-9], [A-Za-z0-9_], [ ]"
    value = unescaped(pattern)
    if has_class_in_class(value):
        return "reads [, &&, -- and ~~ inside of […] otherwise", r"[A-Za-z] for [[:alpha:]], \["
    if has_flags(value):
        return "reads flags otherwise", "lower(s), and the pattern without (?i)"
    if _REPEATED.search(_PART.sub("_", value)) or _OF_RUST.search(_NAMED.sub("", value)):
        return "reads a++, a{2}{3} and some names of signs otherwise", r"(?:a{2}){3}, \p{L}"
    is_empty = operation.name in _OF_EACH_MATCH and may_be_empty(value)
    if is_empty is None:
        return "does not know all signs and groups of Java", r"[\r\n] for \R, (a) for (?<=a)"
    if is_empty and (operation.name == "split" or not _AT_THE_START.fullmatch(value)):
        return "finds other empty matches", "a+ for a*"
    if takes_the_match(operation) and has_end(value):
        return "finds the ends of lines elsewhere", "the pattern without $"
    if operation.name == "regexp_replace" and not _put_plainly(operation.operands[2:3]):
        return "reads the replacement otherwise", "text and $1 before other signs"
    return None


def found_from(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`locate(text, s, n)` from a computed position, for which Spark gives 0 where it is null."""
    if len(types) == 3 and operation.operands[2].literal is None:
        return "gives null where the position is null", "instr(s, text), or a written position"
    return None


def encoded(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """`encode(s, charset)`: Spark fails at a sign that the charset lacks."""
    charset = operation.operands[1].literal if len(types) == 2 else None
    if charset is not None and charset[1:-1].lower() in _OF_ALL_SIGNS:
        return None
    return "writes ? for a sign that the charset lacks, or takes others", "encode(s, 'UTF-8')"


def takes_the_match(operation: Operation) -> bool:
    """Whether the end of a match matters: not where one is only looked for, or gives a group."""
    return operation.name not in _TESTS and not _is_group(operation)


def _is_group(operation: Operation) -> bool:
    """Whether it takes a group of a match, in which nothing behind the group matters."""
    group = operation.operands[2].literal if len(operation.operands) == 3 else "1"
    return operation.name == "regexp_extract" and group not in {"0", None}


def _put_plainly(replacements: Sequence[Operand]) -> bool:
    """Whether a replacement is a literal that Java and Rust read in the same way."""
    texts = (one.literal for one in replacements)
    return all(text is not None and _PLAIN.fullmatch(text[1:-1]) for text in texts)


def binary(operation: Operation, types: Sequence[str | None]) -> Problem | None:
    """Parts of BINARY."""
    return ("makes text of BINARY", "hex(x)") if "binary" in types else None


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


def has_flags(pattern: str) -> bool:
    """Whether a pattern sets flags, as `(?s)`: Java and Rust read `(?U)` and others otherwise."""
    return _FLAGS.search(_PART.sub("_", pattern)) is not None


def may_be_empty(pattern: str) -> bool | None:
    """Whether a pattern may match no sign, as `a*`; None: Rust does not read it, as `(?<=a)`."""
    try:
        plain = _NAMED.sub("x", pattern).replace("(?<", "(?P<").replace("\\z", "\\Z")
        return re.match(plain, "") is not None
    except re.error:
        return None


def has_class_in_class(pattern: str) -> bool:
    """Whether a class contains another one, as in `[[:alpha:]]`, or an operation on classes."""
    classes = (found[0] for found in _PART.finditer(pattern) if found[0].startswith("["))
    return any(_OF_CLASSES.search(_ESCAPED_SIGN.sub("", one[1:])) for one in classes)
