"""Whether a pipeline has become stale: asked by the clock, since then no run of it says so."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Context

from strandline_airflow.alerts import alert_findings
from strandline_airflow.commands import CommandOperator


class StrandlineWatchOperator(CommandOperator):
    """Alerts of a pipeline that has become stale, as its file says to whom.

    It is stale if `strandline status` finds that arrivals or runs are missing, or if the day that
    is over is not processed.
    """

    ui_color = "#f2dcdc"

    def execute(self, context: Context) -> None:
        """Ask for the status, and send what is new.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        status = self._call("status", str(self.pipeline), "--json")
        found = with_unprocessed(status, datetime.now(UTC))
        alert_findings(context, str(self.pipeline), self, found, events=("stale",))


def with_unprocessed(status: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """A status with a finding that the day which is over is not processed, where it is not."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    until, findings = status.get("processed_up_to"), list(status.get("findings") or ())
    is_known = any(finding["name"] == "schedule" for finding in findings)
    if not is_known and (until is None or datetime.fromisoformat(until) < midnight):
        reached = "nothing is processed" if until is None else f"processed up to {until}"
        sentence = f"{reached}, and it is {now.isoformat(timespec='minutes')}"
        findings.append({"name": "schedule", "severity": "warning", "sentence": sentence})
    return {"findings": findings}
