"""A publication that has begun and has not ended."""

from __future__ import annotations

from dataclasses import dataclass, replace

from strandline.lake.ledger.entry import Entry


@dataclass(frozen=True)
class UnfinishedPublish:
    """A publication that has begun, and has neither ended nor been dropped, also if it failed.

    The next process that takes the lock ends it, since it may have written only some tables.

    Attributes:
        begun: its step `publishing`.
        drop: its step `dropping`, after which it is taken back; None: it is to be finished.
    """

    begun: Entry
    drop: Entry | None = None

    @property
    def run_id(self) -> str:
        """The id of the publishing run."""
        return self.begun.run_id

    @property
    def notice(self) -> str:
        """A notice for readers of the tables."""
        return (
            f"run {self.run_id} has begun to publish and has not ended: the tables are shown as "
            f"they were before; if that run has died, {self.end_in_words}"
        )

    @property
    def end_in_words(self) -> str:
        """The way in which the next process ends the publication, as words of a message."""
        does = "finishes the publish" if self.drop is None else "takes the publish back"
        return f"the next one {does}"

    def after(self, step: Entry) -> UnfinishedPublish | None:
        """The publication after a further step; None if the step has ended it."""
        if step.run_id != self.run_id:
            return self
        if step.step == "dropping":
            return replace(self, drop=step)
        return None if step.step in {"published", "dropped"} else self
