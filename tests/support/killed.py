"""A kill that a test plays within its own process."""

from __future__ import annotations


class Killed(BaseException):
    """What a kill is to the code: nothing catches it."""
