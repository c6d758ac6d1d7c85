"""The DAGs of every pipeline file."""

from __future__ import annotations

from strandline_airflow import strandline_dags

strandline_dags(None, globals())
