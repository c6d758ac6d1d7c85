"""The example's input: lands the flights of 2013 in the lake."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG

from strandline_airflow import StrandlineScriptOperator
from strandline_airflow.settings import task_defaults

DOC = """
### Land the flights of 2013

Stands for the ingestion that a real pipeline would have: writes 336,776 real departures from New
York into the Delta table `landing/flights`, as they are. It runs by hand, and finds out by itself
when there is nothing left to do. `strandline_daily_flights` reads that table.
"""

with DAG(
    dag_id="land_flights",
    description="Example: land the flights of 2013",
    schedule=None,
    start_date=datetime(1970, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=task_defaults(),
    doc_md=DOC,
    tags=["strandline", "example"],
):
    StrandlineScriptOperator(
        task_id="land", script=Path(__file__).parents[1] / "jobs" / "land_flights.py"
    )
