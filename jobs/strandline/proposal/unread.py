"""The columns of a table that look like times, and cannot be proposed as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from strandline.proposal.formats import LEAST_SHARE
from strandline.proposal.times import is_text, time_columns

_WITH_ZONE_NAME = (
    r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?"
    r"(Z|[+-]\d{2}:?\d{2})? ?\[?([A-Z]{2,5}|[A-Z][A-Za-z]+(/[A-Za-z_+-]+)+)\]?$"
)
_ZONE_NAME = re.compile(r"([A-Z]{2,5}|[A-Z][A-Za-z]+(?:/[A-Za-z_+-]+)+)\]?$")
_NO_ZONES = ("UTC", "AM", "PM")
"""Words after a time that need no sentence: `UTC` is read, `AM` and `PM` are halves of a day."""


def unread_times(sample: pa.Table) -> list[str]:
    """A sentence about each column that looks like a time but has no expression, with a way out."""
    return [*_with_zone_names(sample), *_in_nested_columns(sample)]


def _with_zone_names(sample: pa.Table) -> Iterator[str]:
    for field in sample.schema:
        if not is_text(field.type):
            continue
        known = sample.column(field.name).drop_null()
        named = known.filter(pc.match_substring_regex(known, _WITH_ZONE_NAME))
        if not len(named) or len(named) < LEAST_SHARE * len(known):
            continue
        name = _ZONE_NAME.search(named[0].as_py())
        if name is None or name[1] in _NO_ZONES:
            continue
        yield (
            f"{field.name} is a time with the name of a zone ({name[1]}), which is not read: land "
            "it as a timestamp, or with an offset (2024-03-01T10:20:00+01:00)."
        )


def _in_nested_columns(sample: pa.Table) -> Iterator[str]:
    fields = sample.select([one.name for one in sample.schema if types.is_struct(one.type)])
    while any(types.is_struct(one.type) for one in fields.schema):
        fields = fields.flatten()
    for time in time_columns(fields):
        if not time.is_number:
            by_name = f"event_time: {time.name}"
            yield (
                f"{time.name} is a time inside a nested column, and such fields are not proposed: "
                f"if it is the right one, write {by_name} in the file, as an expression if it is "
                "no timestamp."
            )
