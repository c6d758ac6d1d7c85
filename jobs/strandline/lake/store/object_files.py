"""The objects of a store as a file system for Arrow, by delta-rs and with its credentials."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs


class _Stream:
    """A stream of delta-rs that accepts Arrow's buffers."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        return int(self._stream.write(bytes(data)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ObjectFiles(DeltaStorageHandler):
    """The objects below a URI."""

    def open_output_stream(
        self, path: str, metadata: dict[str, str] | None = None
    ) -> pa.PythonFile:
        """Open an object for writing; it exists after the stream is closed."""
        return pa.PythonFile(_Stream(self._handler.open_output_stream(path, metadata)), mode="w")

    def create_dir(self, path: str, recursive: bool = True) -> None:
        """Do nothing: a folder exists with its first object."""

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """The files and folders, without the empty objects by which some stores mark a folder."""
        found = super().get_file_info_selector(selector)
        folders = {selector.base_dir.strip("/")}
        folders |= {one.path for one in found if one.type == fs.FileType.Directory}
        return [
            one
            for one in found
            if one.type != fs.FileType.File or one.size or one.path.strip("/") not in folders
        ]
