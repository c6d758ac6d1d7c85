"""A guess: a proposed value with its certainty and its reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    """The certainty of a guess; TODO: the user has to decide."""

    SURE = "sure"
    LIKELY = "likely"
    GUESS = "guess"
    TODO = "TODO"


@dataclass(frozen=True)
class Guess:
    """One line of a proposal.

    Attributes:
        key: the key of the pipeline file.
        value: the proposed value, as text of the file.
        certainty: its certainty.
        why: the observation that it is based on.
    """

    key: str
    value: str
    certainty: Certainty
    why: str
