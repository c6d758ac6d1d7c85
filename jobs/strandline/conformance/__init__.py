"""The comparison of an engine with recorded results of Flink, the goldens."""

from strandline.conformance.reference_runner import answer_by_reference
from strandline.conformance.run import ConformanceResult, cases_of, run_conformance

__all__ = ["ConformanceResult", "answer_by_reference", "cases_of", "run_conformance"]
