"""The JSON document of a command, written to a file; the task's log shows the text for people.

A command on another machine writes it into the lake.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from strandline.model.command import JSON_FILE_VARIABLE


class Answer(Protocol):
    """The place to which a command writes its JSON document."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that name the place to the command."""

    def read(self) -> Any:
        """The document; None if there is none."""


@dataclass(frozen=True)
class AnswerFile:
    """The file into which a command on this machine writes its JSON document."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that name the file to the command."""
        return {JSON_FILE_VARIABLE: str(self.path)}

    def read(self, secret: str | None = None) -> Any:
        """The document; None if the command has written none, or was killed while it wrote.

        Args:
            secret: text that is replaced by `***` wherever it occurs in the document.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
            return json.loads(text.replace(secret, "***") if secret else text)
        except (FileNotFoundError, ValueError):
            return None


@contextmanager
def answer_file() -> Iterator[AnswerFile]:
    """A temporary file for the document of one command."""
    with TemporaryDirectory(prefix="strandline-") as folder:
        yield AnswerFile(Path(folder, "answer.json"))


def exit_code_of(answer: Any) -> int | None:
    """The exit code in a document about an error; None if it has none."""
    match answer:
        case {"error": _, "exit_code": int(code)}:
            return code
    return None


def error_of(answer: Any) -> Mapping[str, str]:
    """The parts of a document's error; empty if it has no error.

    They are `kind` (missing: of a version before 0.2.0), `place`, `problem` and `way_out`.
    """
    match answer:
        case {"error": {"place": str(), "problem": str(), "way_out": str()} as error}:
            return {name: str(part) for name, part in error.items()}
    return {}
