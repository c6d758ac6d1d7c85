"""What rebuilds by a replay have in common: its outcome, computed once for each identity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame

from strandline.engine.frames import PerIdentity, computed
from strandline.engine.scope import Rebuild


@dataclass(frozen=True)
class ReplayedRebuild(Rebuild, ABC):
    """A rebuild whose accepted records are replayed."""

    @cached_property
    def _replayed(self) -> PerIdentity:
        """The accepted records with the outcome of their replay; at hand."""
        return PerIdentity(lambda identity: computed(self._replay(identity)))

    @cached_property
    def _fired(self) -> PerIdentity:
        """The firings with PLACE and FIRED_AT; at hand."""
        return PerIdentity(lambda identity: computed(self._place(identity)))

    @abstractmethod
    def _replay(self, identity: Column) -> DataFrame:
        """The accepted records with the outcome of their replay (`rows.replayed`)."""

    @abstractmethod
    def _place(self, identity: Column) -> DataFrame:
        """The firings with PLACE and FIRED_AT (`outcome.placed`)."""
