"""The DAG that shows the errors of broken pipeline files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowFailException

from strandline.errors import InputError

DOC = """
### Pipeline files that are broken

A broken file has no daily DAG until it is corrected; the DAGs of the other pipelines go on. An
import error of the DAG file would stop all of them.

```text
{errors}
```
"""


def broken_dag(errors: Sequence[InputError]) -> DAG:
    """The DAG whose documentation lists each broken file with its error; it has no schedule."""
    problems = "\n".join(str(error) for error in errors)
    with DAG(
        dag_id="strandline_broken",
        description=f"{len(errors)} broken, so without a daily DAG",
        schedule=None,
        start_date=datetime(1970, 1, 1, tzinfo=UTC),
        doc_md=DOC.format(errors=problems),
        tags=["strandline", "broken"],
    ) as dag:

        @task
        def pipeline_files() -> None:
            raise AirflowFailException(problems)

        pipeline_files()
    return dag
