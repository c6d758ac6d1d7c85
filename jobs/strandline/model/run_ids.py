"""The id of a run: a hash of its caller's run, and the number of the attempt."""

from __future__ import annotations

from hashlib import sha256


def shared_id(run_key: str) -> str:
    """The common prefix of the ids of all attempts of a caller's run, such as `1f0c5a9be2`."""
    return sha256(run_key.encode()).hexdigest()[:10]
