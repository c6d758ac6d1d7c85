"""No DAG: makes Airflow show the broken pipeline files, as an import error of this file."""

from __future__ import annotations

from strandline_airflow import raise_broken_files

raise_broken_files(None, globals())
