"""The JSON document of a command, in a file of its own: the task's log has the page for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from strandline.cli.answer_file import VARIABLE

NO_FILE = {VARIABLE: "/dev/null"}
"""The variables of a command whose document nobody can read, since it runs on another machine."""


@dataclass(frozen=True)
class AnswerFile:
    """The file into which a command on this machine writes its document."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the command knows of the file."""
        return {VARIABLE: str(self.path)}

    def read(self, secret: str | None = None) -> Any:
        """The document; null: the command has written none, or was killed as it wrote.

        Args:
            secret: text that the document does not show, should the command have written it.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
            return json.loads(text.replace(secret, "***") if secret else text)
        except (FileNotFoundError, ValueError):
            return None


@contextmanager
def answer_file() -> Iterator[AnswerFile]:
    """A file for the document of one command, gone afterwards."""
    with TemporaryDirectory(prefix="strandline-") as folder:
        yield AnswerFile(Path(folder, "answer.json"))


def error_of(answer: Any) -> Mapping[str, str]:
    """The parts of a document's error: `place`, `problem`, `way_out`; empty: it has none."""
    match answer:
        case {"error": {"place": str(place), "problem": str(problem), "way_out": str(way_out)}}:
            return {"place": place, "problem": problem, "way_out": way_out}
    return {}
