"""Checks of a pipeline's expressions against its landing's columns, before Spark starts."""

from __future__ import annotations

from strandline.lake.landing.known_columns import columns_by_log
from strandline.lake.landing.log import LandingLog
from strandline.spec.expressions import as_one_error, problems_of
from strandline.spec.pipeline import PipelineSpec


def require_expressions(spec: PipelineSpec, log: LandingLog | None) -> None:
    """Refuse a pipeline with wrong expressions.

    Args:
        spec: the pipeline.
        log: the landing table's log; None: not known without a catalog, so columns are not checked.

    Raises:
        InputError: some are wrong; all of them are named.
    """
    problems = problems_of(spec, columns_by_log(spec, log), spec.pipeline)
    if problems:
        raise as_one_error(problems, spec.pipeline)
