"""What an engine cannot do, refused by name before anything is read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strandline.errors import InputError
from strandline.lake.joined_log import JoinedLog
from strandline.lake.landing_log import LandingLog
from strandline.lake.sessions.choice import EngineChoice
from strandline.lake.store import Lake
from strandline.spec.engines import not_on
from strandline.spec.pipeline import PipelineSpec

_READ_BY_SAIL = {"timestampNtz", "deletionVectors", "columnMapping"}
"""Reader features of Delta: Sail reads the first, and of the others tables that do not use them."""
_PLAIN = re.compile(r"[A-Za-z0-9/._~:@=+,-]")
"""Signs that Sail finds in a path: it looks for others as URLs write them."""
_MAPPING = "delta.columnMapping.mode"


def require_able(
    choice: EngineChoice, lake: Lake, spec: PipelineSpec, log: LandingLog | None
) -> None:
    """Refuse what an engine cannot do of a pipeline.

    Args:
        choice: the engine.
        lake: where its tables lie.
        spec: the pipeline.
        log: of its landing table; None: only a catalog knows where that lies.

    Raises:
        InputError: there is such a thing.
    """
    if choice.name == "sail" and (signs := _not_in_a_path(lake.root)):
        raise InputError(
            f"lake {lake.root}",
            f"Sail finds no table below a path with {' '.join(signs)}",
            "give the lake another name, or --engine spark",
        )
    for place, problem in _problems(choice, spec, log):
        raise InputError(f"{spec.pipeline}: {place}", problem, "give --engine spark")


def _problems(
    choice: EngineChoice, spec: PipelineSpec, log: LandingLog | None
) -> Iterator[tuple[str, str]]:
    for path, feature in not_on(choice.name, spec).items():
        yield path, f"{feature} is not yet run on {choice.name}"
    if choice.name != "sail":
        return
    for name in spec.spark:
        yield f"spark.{name}", "Sail has no such setting"
    if log is None:
        yield "source.table", "Sail knows no catalog"
        return
    for one in _logs(log):
        for problem in _of_table(one):
            yield "source.table", problem


def _not_in_a_path(root: str) -> list[str]:
    return sorted({repr(sign) for sign in root if not _PLAIN.match(sign)})


def _logs(log: LandingLog) -> list[LandingLog]:
    return [log.left, log.right] if isinstance(log, JoinedLog) else [log]


def _of_table(log: LandingLog) -> Iterator[str]:
    """What Sail cannot read of a landing table."""
    unknown = {*(log.table.protocol().reader_features or ())} - _READ_BY_SAIL
    if unknown:
        yield f"its table uses {', '.join(sorted(unknown))}, which Sail cannot read"
    if log.table.metadata().configuration.get(_MAPPING, "none").lower() != "none":
        yield "its table maps the names of its columns, which Sail cannot read"
    if log.deleted:
        yield "its table has deletion vectors, which Sail cannot read"
