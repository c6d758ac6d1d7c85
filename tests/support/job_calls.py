"""What a person fills into the form of the reprocess DAG, and what its tasks call with that."""

from __future__ import annotations

FORM = {
    "pipeline": "flights",
    "start": "2013-02-10",
    "end": "2013-02-13",
    "reason": "the delays were wrong",
}


def arguments(call: list[str]) -> list[str]:
    """Those of the job in a call of `spark-submit`: what follows its script."""
    (script,) = (position for position, one in enumerate(call) if one.endswith(".py"))
    return call[script + 1 :]
