"""The objects of a store as files, for Arrow: through delta-rs, which has the same credentials."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs


class _Stream:
    """A stream of delta-rs, which takes bytes, where Arrow hands over buffers."""

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
        """Open an object for writing; it is there once the stream is closed."""
        return pa.PythonFile(_Stream(self._handler.open_output_stream(path, metadata)), mode="w")

    def create_dir(self, path: str, recursive: bool = True) -> None:
        """Do nothing: a folder is there with its first object."""

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """Files and folders; the empty objects with which some stores mark a folder left out."""
        found = super().get_file_info_selector(selector)
        folders = {selector.base_dir.strip("/")}
        folders |= {one.path for one in found if one.type == fs.FileType.Directory}
        return [
            one
            for one in found
            if one.type != fs.FileType.File or one.size or one.path.strip("/") not in folders
        ]
