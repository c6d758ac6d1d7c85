"""What an engine does not run of what a pipeline file can say."""

from __future__ import annotations

from strandline.spec.chained import ResultsSpec
from strandline.spec.common import CommonSpec, EngineName
from strandline.spec.windowed import WindowedSpec


def not_on(engine: EngineName, spec: CommonSpec) -> dict[str, str]:
    """The features of a pipeline that an engine does not run yet, by their place in its file.

    Windows that go by the order of their records need them sorted as they lie, records of one
    position by their identity: Sail sorts again by what a window function names.
    """
    if engine != "sail":
        return {}
    found = {}
    if isinstance(spec, WindowedSpec) and spec.goes_by_order:
        place = "evictor" if spec.fires_by.fires_at_end else "trigger"
        found[place] = "what goes by the order of the records of a window"
    if isinstance(spec, ResultsSpec):
        found |= {
            f"source.pipeline.{place}": what
            for place, what in not_on(engine, spec.upstream).items()
        }
    return found
