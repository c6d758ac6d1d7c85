"""The results of a user's process function for firings."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from strandline.model.intervals import END_OF_INSTANTS_MS, LEAST_INSTANT_MS
from strandline.model.lateness import MIN_WATERMARK
from strandline.model.windows import GLOBAL_WINDOW
from strandline.reference.answer import Firing
from strandline.spec import functions
from strandline.spec.pipeline import PipelineSpec


def returned(
    spec: PipelineSpec, firing: Firing, columns: pa.Schema | None = None
) -> dict[str, Any]:
    """The result of a pipeline's function for a firing, by column.

    Args:
        spec: the pipeline.
        firing: a firing of its replay.
        columns: the columns of its landing table; None: the records' columns.

    Raises:
        ProcessError: the function fails, or returns something else than declared.
    """
    if spec.process is None:
        return {}
    window = firing.window
    edges = (window.start_ms, window.end_ms)
    if window == GLOBAL_WINDOW:
        edges = (LEAST_INSTANT_MS, END_OF_INSTANTS_MS - 1)
    found = functions.result_of(
        functions.function_of(spec.process.files, spec.process.name),
        dict(zip(spec.source.key, firing.key, strict=True)),
        functions.times_of(*edges),
        pa.Table.from_pylist([dict(record.payload) for record in firing.members], schema=columns),
        None if firing.watermark_ms == MIN_WATERMARK else firing.watermark_ms,
        spec.returns,
    )
    return {name: values[0].as_py() for name, values in found.items()}
