"""The formats of times in texts and numbers, with Spark's pattern for each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_CLOCK = (
    r"(?:(?P<gap>,? |T)(?P<hour>\d{1,2}):\d{2}(?P<second>:\d{2})?(?P<part>\.\d{1,9})?"
    r"(?P<half> ?[AaPp][Mm])?)?"
)
_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?P<second>:\d{2}(?:\.\d{1,9})?)?)?"
    r"(?P<zone> ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?"
)
_NUMBERS = re.compile(
    rf"(?P<first>\d{{1,2}})(?P<by>[./-])(?P<then>\d{{1,2}})(?P=by)\d{{4}}{_CLOCK}"
)
_YEAR_FIRST = re.compile(rf"\d{{4}}(?P<by>[./])\d{{1,2}}(?P=by)\d{{1,2}}{_CLOCK}")
_NAMED = re.compile(rf"(?P<first>\d{{1,2}})(?P<by>[ -])[A-Z][a-z]{{2}}(?P=by)\d{{4}}{_CLOCK}")
_NAME_FIRST = re.compile(rf"[A-Z][a-z]{{2}} (?P<first>\d{{1,2}})(?P<by>,?) \d{{4}}{_CLOCK}")
_COMPACT = re.compile(r"(?:19|20)\d{6}(?P<clock>\d{6})?")
LEAST_SHARE = 0.9
"""The smallest share of values that must have the same format."""


@dataclass(frozen=True)
class TextForm:
    """The format of a column's times.

    Attributes:
        spark: the pattern for `try_to_timestamp`; None: ISO-8601, for which a cast suffices.
        pandas: the pattern for pandas; `ISO8601` for ISO-8601.
        has_zone: whether the texts have a time zone; else they are in UTC.
        whole_days: whether they have no time of day.
        is_ambiguous: whether day and month could be swapped.
    """

    spark: str | None
    pandas: str
    has_zone: bool = False
    whole_days: bool = False
    is_ambiguous: bool = False


def form_of(texts: Sequence[str]) -> TextForm | None:
    """The most frequent format of some texts; None if it is too rare, or they are not times."""
    found = Counter(form for text in texts if (form := _form_of_one(text)) is not None)
    if not found:
        return None
    form, _ = found.most_common(1)[0]
    if isinstance(form, str):
        return _by_numbers(texts) if sum(found.values()) >= LEAST_SHARE * len(texts) else None
    like_it = sum(many for one, many in found.items() if one == form)
    return form if like_it >= LEAST_SHARE * len(texts) else None


_DAY_AND_MONTH = "day and month"
"""Stands for the format of a date such as `01/02/2013`: only other dates show which is the day."""


def _form_of_one(text: str) -> TextForm | str | None:
    """The format of one text, or `_DAY_AND_MONTH`; None if it is not a time."""
    if match := _ISO.fullmatch(text):
        return _iso(match, text)
    if _NUMBERS.fullmatch(text):
        return _DAY_AND_MONTH
    if match := _YEAR_FIRST.fullmatch(text):
        by = match["by"]
        return _with_clock(f"yyyy{by}M{by}d", f"%Y{by}%m{by}%d", match)
    if match := _NAMED.fullmatch(text):
        by = match["by"]
        return _with_clock(f"d{by}MMM{by}yyyy", f"%d{by}%b{by}%Y", match)
    if match := _NAME_FIRST.fullmatch(text):
        by = match["by"]
        return _with_clock(f"MMM d{by} yyyy", f"%b %d{by} %Y", match)
    if match := _COMPACT.fullmatch(text):
        clock = match["clock"] is not None
        spark = "yyyyMMddHHmmss" if clock else "yyyyMMdd"
        return TextForm(spark, "%Y%m%d%H%M%S" if clock else "%Y%m%d", whole_days=not clock)
    return None


def _iso(match: re.Match[str], text: str) -> TextForm:
    has_zone, whole_days = match["zone"] is not None, len(text) == len("2013-01-15")
    if has_zone and match["second"] is None and not whole_days:
        between = "'T'" if "T" in text else " "
        return TextForm(f"yyyy-MM-dd{between}HH:mmXXX", "ISO8601", has_zone=True)
    return TextForm(None, "ISO8601", has_zone=has_zone, whole_days=whole_days)


def _with_clock(spark: str, pandas: str, match: re.Match[str]) -> TextForm:
    """A format with the time of day of a text after its date."""
    if match["hour"] is None:
        return TextForm(spark, pandas, whole_days=True)
    gap = "'T'" if match["gap"] == "T" else match["gap"]
    half = match["half"]
    spark += gap + ("h:mm" if half else "H:mm")
    pandas += match["gap"] + ("%I:%M" if half else "%H:%M")
    if match["second"]:
        spark, pandas = f"{spark}:ss", f"{pandas}:%S"
    if match["part"]:
        spark, pandas = f"{spark}.{'S' * (len(match['part']) - 1)}", f"{pandas}.%f"
    if half:
        between = " " if half.startswith(" ") else ""
        spark, pandas = f"{spark}{between}a", f"{pandas}{between}%p"
    return TextForm(spark, pandas)


def _by_numbers(texts: Sequence[str]) -> TextForm | None:
    """The format of dates such as `01/02/2013`, in which a number above twelve must be the day.

    If there is none, the month comes first between slashes, and the day between other separators.
    """
    matches = [match for text in texts if (match := _NUMBERS.fullmatch(text))]
    first = any(int(match["first"]) > 12 for match in matches)
    second = any(int(match["then"]) > 12 for match in matches)
    if first and second:
        return None
    by = Counter(match["by"] for match in matches).most_common(1)[0][0]
    day_first = first or (not second and by != "/")
    spark, pandas = (
        ("d{0}M{0}yyyy", "%d{0}%m{0}%Y") if day_first else ("M{0}d{0}yyyy", "%m{0}%d{0}%Y")
    )
    forms = Counter(_with_clock(spark.format(by), pandas.format(by), match) for match in matches)
    form, count = forms.most_common(1)[0]
    if count < LEAST_SHARE * len(texts):
        return None
    return TextForm(form.spark, form.pandas, False, form.whole_days, not (first or second))


def epoch_unit(numbers: Sequence[float]) -> tuple[str, int] | None:
    """The unit in which numbers count from 1970, as `("milliseconds", 1000)`; None: there is none.

    The number is that of the unit in a second.
    """
    for unit, per_second in _EPOCHS:
        if all(_FIRST_S * per_second <= number < _LAST_S * per_second for number in numbers):
            return unit, per_second
    return None


_EPOCHS = (("seconds", 1), ("milliseconds", 10**3), ("microseconds", 10**6), ("nanoseconds", 10**9))
_FIRST_S, _LAST_S = 631_152_000, 4_102_444_800
"""The years 1990 to 2099: no number in them is of two units."""
