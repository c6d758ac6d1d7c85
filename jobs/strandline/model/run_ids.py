"""What a run is called: its caller's run, and the how manieth attempt of that it is."""

from __future__ import annotations

from hashlib import sha256


def shared_id(run_key: str) -> str:
    """What the ids of all attempts of a caller's run begin with, such as `1f0c5a9be2`."""
    return sha256(run_key.encode()).hexdigest()[:10]
