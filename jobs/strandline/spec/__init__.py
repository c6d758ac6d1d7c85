"""Pipeline files as frozen, validated values."""

from strandline.spec.loading import (
    file_of,
    files_by_name,
    find_spec,
    load_spec,
    only_one,
    parse_any,
    parse_spec,
    require_folder,
    spec_files,
)
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.runnable import AnySpec

__all__ = [
    "AnySpec",
    "PipelineSpec",
    "file_of",
    "files_by_name",
    "find_spec",
    "load_spec",
    "only_one",
    "parse_any",
    "parse_spec",
    "require_folder",
    "spec_files",
]
