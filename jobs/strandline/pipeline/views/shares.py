"""How the share of a slot's records that its windows hold is worded."""

from __future__ import annotations

from strandline.quality.figures import NOTHING, percent

_STILL_COMING = ("open", "fired")


def share_so_far(share: float | None, state: str) -> str:
    """A share such as `97.6 %`; of a slot that still takes records `100 % so far`."""
    if share is None:
        return NOTHING
    return percent(share, 1) + (" so far" if state in _STILL_COMING else "")
