"""The pipeline YAML as frozen, validated values."""

from strandline.spec.loading import find_spec, load_spec, parse_spec, spec_files
from strandline.spec.pipeline import PipelineSpec

__all__ = ["PipelineSpec", "find_spec", "load_spec", "parse_spec", "spec_files"]
