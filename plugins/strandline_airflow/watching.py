"""The check for stale pipelines, scheduled by time since a stale pipeline has no runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Context

from strandline_airflow.alerts import alert_findings
from strandline_airflow.commands import CommandOperator
from strandline_airflow.outcomes import NothingHasRunError


class StrandlineWatchOperator(CommandOperator):
    """Sends the alerts of a pipeline that has become stale, to the receivers in its file.

    It is stale if `strandline status` finds that arrivals or runs are missing, or if yesterday is
    not processed; one that has never run is stale, too.
    """

    ui_color = "#f2dcdc"

    def execute(self, context: Context) -> None:
        """Read the status, and send an alarm for each new finding.

        Raises:
            AirflowException: as for StrandlineJobOperator.
        """
        try:
            status = self._call("status", str(self.pipeline), "--json")
        except NothingHasRunError:
            status = {}
        found = with_unprocessed(status, datetime.now(UTC))
        alert_findings(context, str(self.pipeline), self, found, events=("stale",))


def with_unprocessed(status: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The findings of a status, with one more if the last full day is not processed.

    Their range begins where processing has ended, and ends with the last midnight; there is none if
    nothing is missing, or nothing has ever been processed.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    until, findings = status.get("processed_up_to"), list(status.get("findings") or ())
    is_known = any(finding["name"] == "schedule" for finding in findings)
    is_behind = until is None or datetime.fromisoformat(until) < midnight
    if is_behind and not is_known:
        reached = "nothing is processed" if until is None else f"processed up to {until}"
        sentence = f"{reached}, and it is {now:%Y-%m-%dT%H:%MZ}"
        findings.append({"name": "schedule", "severity": "warning", "sentence": sentence})
    found: dict[str, Any] = {"findings": findings}
    if is_behind and until is not None:
        found["range"] = {"start": until, "end": f"{midnight:%Y-%m-%dT%H:%M:%SZ}"}
    return found
