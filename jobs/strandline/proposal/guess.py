"""A guess: what is proposed, how sure it is, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    """How far a guess may be relied on; TODO: a person has to decide."""

    SURE = "sure"
    LIKELY = "likely"
    GUESS = "guess"
    TODO = "TODO"


@dataclass(frozen=True)
class Guess:
    """One line of a proposal.

    Attributes:
        what: the key of the pipeline file that it is for.
        value: what is proposed, as the file says it.
        certainty: how sure it is.
        why: what it was guessed from.
    """

    what: str
    value: str
    certainty: Certainty
    why: str
