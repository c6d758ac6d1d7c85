"""The comparison of an engine with recorded results of Flink, the goldens."""

from strandline.conformance.answer import Answer
from strandline.conformance.compare import Disagreement
from strandline.conformance.reference_runner import answer_by_reference
from strandline.conformance.run import ConformanceResult, Engine, Outcome, run_conformance
from strandline.conformance.scenario import Scenario, Unsupported

__all__ = [
    "Answer",
    "ConformanceResult",
    "Disagreement",
    "Engine",
    "Outcome",
    "Scenario",
    "Unsupported",
    "answer_by_reference",
    "run_conformance",
]
