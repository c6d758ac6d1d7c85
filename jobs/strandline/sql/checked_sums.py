"""Sums of BIGINT that fail where they overflow, for Sail, whose own go on at the other end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import Token, tokenize

_QUANTIFIERS = {"DISTINCT", "ALL"}


def with_checked_sums(text: str, is_bigint: Callable[[str], bool]) -> str:
    """An aggregate whose sums of BIGINT are computed as DECIMAL, and cast back.

    Args:
        text: the aggregate in Spark SQL.
        is_bigint: whether an expression over its rows is a BIGINT.
    """
    tokens = tokenize(text, read="spark")
    for place in reversed(range(len(tokens) - 1)):  # so that places before it stay right
        if _is_sum(tokens, place):
            text = _checked(text, tokens, place, is_bigint)
    return text


def _is_sum(tokens: Sequence[Token], place: int) -> bool:
    is_qualified = place > 0 and tokens[place - 1].text == "."
    is_call = tokens[place].text.lower() == "sum" and tokens[place + 1].text == "("
    return is_call and not is_qualified


def _checked(
    text: str, tokens: Sequence[Token], place: int, is_bigint: Callable[[str], bool]
) -> str:
    first, last = place + 2, _closing(tokens, place + 1)
    quantifier = tokens[first].text.upper()
    first += quantifier in _QUANTIFIERS
    argument = text[tokens[first].start : tokens[last].start]
    if not is_bigint(argument):
        return text
    end = tokens[last].end + 1
    after = [one.text.upper() for one in tokens[last + 1 : last + 3]]
    filtered = ""
    if after == ["FILTER", "("]:
        until = tokens[_closing(tokens, last + 2)].end + 1
        filtered, end = text[end:until], until
    distinct = "DISTINCT " if quantifier == "DISTINCT" else ""
    summed = f"sum({distinct}CAST({argument} AS DECIMAL(38, 0))){filtered}"
    return f"{text[: tokens[place].start]}CAST({summed} AS BIGINT){text[end:]}"


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """The place of the bracket that closes another one."""
    depth = 0
    for place in range(opening, len(tokens)):
        depth += (tokens[place].text == "(") - (tokens[place].text == ")")
        if depth == 0:
            return place
    msg = "a bracket is not closed"
    raise ValueError(msg)
