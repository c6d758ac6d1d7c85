"""Access to pipelines: a user who may read a DAG that publishes a pipeline may see it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import (
    GetUserDep,
    requires_access_dag,
    requires_access_view,
)
from airflow.models.asset import AssetModel, TaskOutletAssetReference
from fastapi import Depends, HTTPException, Request
from sqlalchemy import select
from sqlalchemy.orm import Session

from strandline.spec import PipelineSpec
from strandline_airflow.catalogue import published_asset, read_catalogue
from strandline_airflow.settings import pipelines_folder

SIGNED_IN = Depends(requires_access_view(AccessView.PLUGINS))
"""The dependency of the app, and so of each of its routes, that requires a signed-in user.

Airflow itself does not authenticate requests to a plugin's app."""
_PIPELINE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")
_DAG_ID = re.compile(r"[\w.\-~:+]{1,250}")
_DAILY = "strandline_daily_{pipeline}"


def readable_pipeline(
    pipeline: str, request: Request, user: GetUserDep, session: SessionDep
) -> PipelineSpec:
    """The pipeline in a request's path.

    Raises:
        HTTPException: 403: the user may not read it, or would not if it existed; 404: it does not
            exist.
    """
    if not _PIPELINE.fullmatch(pipeline):
        raise HTTPException(404, f"There is no pipeline {pipeline[:100]!r}.")
    if not may_read(pipeline, request, user, session):
        raise HTTPException(403, "You may not read a DAG of this pipeline.")
    specs = read_catalogue(pipelines_folder()).specs
    if pipeline not in specs:
        raise HTTPException(404, f"There is no pipeline {pipeline!r}.")
    return specs[pipeline]


def readable_dag(dag_id: str, request: Request, user: GetUserDep) -> str:
    """The DAG id in a request's path.

    Raises:
        HTTPException: 403: the user may not read the DAG; 404: no DAG has this id.
    """
    if not _DAG_ID.fullmatch(dag_id):
        raise HTTPException(404, f"There is no DAG {dag_id[:100]!r}.")
    if not _may_read_dag(dag_id, request, user):
        raise HTTPException(403, "You may not read this DAG.")
    return dag_id


def may_read(pipeline: str, request: Request, user: BaseUser, session: Session) -> bool:
    """Whether a user may read one of the DAGs that publish a pipeline."""
    return any(_may_read_dag(dag, request, user) for dag in _dags_of(pipeline, session))


def _may_read_dag(dag_id: str, request: Request, user: BaseUser) -> bool:
    try:
        requires_access_dag(method="GET", param_dag_id=dag_id)(request, user)
    except HTTPException:
        return False
    return True


def _dags_of(pipeline: str, session: Session) -> Iterable[str]:
    """The ids of the DAGs with a task that publishes a pipeline; of none, the daily DAG's id."""
    publishing = (
        select(TaskOutletAssetReference.dag_id)
        .join(AssetModel, AssetModel.id == TaskOutletAssetReference.asset_id)
        .where(AssetModel.uri == published_asset(pipeline).uri)
        .distinct()
    )
    return session.scalars(publishing).all() or [_DAILY.format(pipeline=pipeline)]


ReadablePipeline = Annotated[PipelineSpec, Depends(readable_pipeline)]
ReadableDag = Annotated[str, Depends(readable_dag)]
