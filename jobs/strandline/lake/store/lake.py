"""The lake: the place of all tables."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from strandline.errors import InputError
from strandline.lake.store.object_store import require_reachable
from strandline.lake.store.places import is_uri, place_of, require_possible

if TYPE_CHECKING:
    from strandline.lake.store.store import Store


@dataclass(frozen=True)
class Lake:
    """A lake: the root folder or URI of all tables."""

    root: str

    @classmethod
    def at(cls, root: str) -> Lake:
        """The lake at a folder, which becomes absolute, or at a URI.

        Raises:
            InputError: see `place_of`; or it is a file.
        """
        lake = cls(place_of(root, "lake"))
        with suppress(OSError):  # of a folder that may not be read, or of a name that is too long
            if lake.folder is not None and lake.folder.is_file():
                raise InputError(f"lake {lake.root}", "is a file", "name the folder of the tables")
        return lake

    @property
    def folder(self) -> Path | None:
        """The local folder of the lake; None on an object store."""
        return None if is_uri(self.root) else Path(self.root)

    def require_reachable(self) -> None:
        """Check the access to an object store by one request.

        Raises:
            InputError: the bucket does not exist, or the credentials are refused.
            RetryableError: the store does not answer.
        """
        if self.folder is None:
            require_reachable(self.root)

    @staticmethod
    def is_catalog_name(table: str) -> bool:
        """Whether a source table has a catalog's name, `catalog.schema.table`."""
        return re.fullmatch(r"\w+\.\w+\.\w+", table) is not None

    def resolve(self, table: str) -> str:
        """The place of a source table, which may be relative to the root.

        Raises:
            InputError: see `place_of`.
        """
        if is_uri(table) or table.startswith("/"):
            return place_of(table, "source.table")
        place = f"{self.root}/{table}"
        return place if self.folder is None else require_possible(place, "source.table")

    def root_of(self, pipeline: str) -> str:
        """The place of a pipeline's tables."""
        return f"{self.root}/{pipeline}"

    def reports(self, pipeline: str) -> Path | None:
        """The folder of a pipeline's reports; None on an object store."""
        return None if self.folder is None else self.folder / pipeline / "_reports"

    def validations(self, pipeline: str) -> Path | None:
        """The folder of the results of a pipeline's audits; None on an object store."""
        reports = self.reports(pipeline)
        return None if reports is None else reports / "gx"

    def pipeline(self, name: str) -> Store:
        """The tables of a pipeline."""
        from strandline.lake.store.store import Store  # noqa: PLC0415 - places need no Arrow

        return Store(self, name)
