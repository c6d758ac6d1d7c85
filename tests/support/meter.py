"""The pipeline `meter` of these tests."""

from __future__ import annotations

from typing import Any

from strandline.spec import PipelineSpec, parse_spec


def a_meter(
    window: dict[str, Any], watermark: dict[str, Any] | None = None, **source: Any
) -> PipelineSpec:
    """Windows over one key by an ascending watermark, unless told otherwise."""
    return parse_spec(
        {
            "pipeline": "meter",
            "source": {
                "table": "landing/meter",
                "arrival_time": "arrived_at",
                "event_time": "happened_at",
                "key": {"device": "device"},
                **source,
            },
            "watermark": watermark or {"strategy": "ascending"},
            "window": window,
        },
        origin="meter.yaml",
    )


HALF_DAYS = a_meter({"tumbling": "12h"}, channel="source", channels=["a"])
"""Windows of half a day, over one channel."""
HALF_DAYS_FILE = """
pipeline: meter
source:
  {table: landing/meter, arrival_time: arrived_at, event_time: happened_at,
   key: {device: device}, channel: source, channels: [a]}
watermark: {strategy: ascending}
window: {tumbling: 12h}
"""
"""The same as its file says it."""
