"""Documents of runs as `strandline runs show` prints them, for the report's parts."""

from __future__ import annotations

from typing import Any

NOTHING_KNOWN = dict.fromkeys(
    (
        *("started", "start", "end", "horizon", "violations", "diff", "diff_published", "message"),
        *("host", "pid", "program_version", "engine", "engine_version", "books", "audit", "gaps"),
        *("versions", "landing_version", "landing_id", "overrides", "acknowledged"),
        *("accepted_loss", "requested_by", "reason", "reverted_by"),
    )
)


def a_run(run_id: str = "a", status: str = "published", **known: Any) -> dict[str, Any]:
    """The document of a run; a published or a kept back one says so of its diff."""
    given: dict[str, Any] = NOTHING_KNOWN | {
        "run_id": run_id,
        "kind": "advance",
        "status": status,
        "step": status,
        "step_of_later_version": False,
        "ended": "2013-02-01T06:00:00Z",
        "spec_fingerprint": "f",
        "closed": False,
        "steps": [],
    }
    if known.get("diff") is not None:
        given["diff_published"] = {"published": True, "rejected": False}.get(status)
    return given | known
