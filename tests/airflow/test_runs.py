"""Each DAG for real: Airflow, Spark and a lake, on the first days of 2013."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
