"""The message that an alert sends, as a subject line, HTML and JSON."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass
from typing import Any

from strandline.spec.common import Event


@dataclass(frozen=True)
class Alarm:
    """A message about one finding of one pipeline.

    Attributes:
        event: the kind of finding, as `alerts.on` of the pipeline's file names it.
        name: the finding's name; a receiver gets one message for each event and name.
        pipeline: the pipeline's name.
        range: the run's range, as `2013-01-01T00:00:00Z to 2013-01-02T00:00:00Z`; empty if the
            finding belongs to no run.
        finding: the finding as a sentence.
        link: the URL of the task's page in Airflow; empty if it has none.
    """

    event: Event
    name: str
    pipeline: str
    range: str
    finding: str
    link: str

    @property
    def subject(self) -> str:
        """One line, such as `strandline flights: rejected`."""
        return f"strandline {self.pipeline}: {self.event.replace('_', ' ')}"

    @property
    def html(self) -> str:
        """The message as HTML; all text is escaped."""
        lines = [f"<p>{html.escape(self.finding)}</p>"]
        if self.range:
            lines.append(f"<p>Range: {html.escape(self.range)}</p>")
        if self.link:
            link = html.escape(self.link, quote=True)
            lines.append(f'<p><a href="{link}">{link}</a></p>')
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The body that a webhook receives; chat services show its key `text`."""
        text = f"{self.subject}: {self.finding} {self.link}".strip()
        return {**asdict(self), "text": text}
