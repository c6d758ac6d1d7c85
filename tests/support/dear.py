"""How many examples a dear law draws: in CI fewer than the others, in `make test-deep` as many."""

from __future__ import annotations

from hypothesis import settings

MOST_IN_CI = 200
_OF_THE_PROFILE = settings.default.max_examples
_IS_CI = settings.get_current_profile_name() == "ci"
ASKED = min(_OF_THE_PROFILE, MOST_IN_CI) if _IS_CI else _OF_THE_PROFILE
DEAR = settings(max_examples=ASKED)
"""The settings of a law whose 1,000 examples would take more than two processor seconds."""
