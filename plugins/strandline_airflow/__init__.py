"""Strandline in Airflow: DAGs from pipeline files, and operators for your own DAGs.

    from strandline_airflow import strandline_dags

    strandline_dags("pipelines/", globals())

Names are imported when they are first used, and none imports pyspark, so that DAG files parse
quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strandline_airflow.approvals import PreviewApprovalOperator
    from strandline_airflow.commands import (
        StrandlineMaintainOperator,
        StrandlineReportOperator,
        StrandlineScriptOperator,
    )
    from strandline_airflow.factory import raise_broken_files, strandline_dags
    from strandline_airflow.families.daily import StrandlineTaskGroup
    from strandline_airflow.operators import StrandlineJobOperator, StrandlinePublishOperator

__all__ = [
    "PreviewApprovalOperator",
    "StrandlineJobOperator",
    "StrandlineMaintainOperator",
    "StrandlinePublishOperator",
    "StrandlineReportOperator",
    "StrandlineScriptOperator",
    "StrandlineTaskGroup",
    "raise_broken_files",
    "strandline_dags",
]

_MODULES = {
    "PreviewApprovalOperator": "approvals",
    "StrandlineJobOperator": "operators",
    "StrandlineMaintainOperator": "commands",
    "StrandlinePublishOperator": "operators",
    "StrandlineReportOperator": "commands",
    "StrandlineScriptOperator": "commands",
    "StrandlineTaskGroup": "families.daily",
    "raise_broken_files": "factory",
    "strandline_dags": "factory",
}


def __getattr__(name: str) -> Any:
    """A name of `__all__`, from the module that has it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
