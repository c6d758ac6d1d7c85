"""The DAGs of a folder of pipeline files."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowFailException

from strandline.errors import InputError
from strandline_airflow.catalogue import read_catalogue
from strandline_airflow.families.all_pipelines import maintain_dag, report_dag, times_of, watch_dag
from strandline_airflow.families.daily import daily_dag
from strandline_airflow.families.reprocess import reprocess_dag
from strandline_airflow.settings import pipelines_folder

_DOC_OF_BROKEN = """
### Pipeline files that are broken

A broken file has no daily DAG until it is corrected; the DAGs of the other pipelines go on. An
import error of the DAG file would stop all of them.

```text
{errors}
```
"""


def strandline_dags(
    pipelines: str | Path | None,
    module: MutableMapping[str, Any],
    *,
    lake: str | None = None,
) -> None:
    """Put the DAGs of a folder of pipeline files into a DAG file.

    There is a daily DAG for each pipeline, and one DAG each for reprocessing a range, for reports
    and for upkeep. A broken file has no daily DAG: the DAG `strandline_broken` shows its error,
    and the other pipelines run on.

        strandline_dags("pipelines/", globals())

    Args:
        pipelines: the folder of the pipeline files, relative to the DAG file's folder; None: from
            the connection or the environment.
        module: `globals()` of the DAG file.
        lake: the lake's root; None: from the connection or the environment.
    """
    folder = _folder(pipelines, module)
    catalogue = read_catalogue(folder)
    names = list(catalogue.specs)
    at: dict[str, Any] = {"folder": folder, "lake": lake}
    dags = [daily_dag(spec, **at) for spec in catalogue.specs.values()]
    dags += [make(names, **at) for make in (reprocess_dag, report_dag, maintain_dag)]
    watched = [spec for spec in catalogue.specs.values() if times_of(spec)]
    dags += [watch_dag(watched, **at)] if watched else []
    dags += [_broken_dag(catalogue.broken)] if catalogue.broken else []
    module.update({dag.dag_id: dag for dag in dags})


def raise_broken_files(pipelines: str | Path | None, module: MutableMapping[str, Any]) -> None:
    """Make Airflow show the broken files of a folder as an import error.

    Call it in a separate DAG file: an import error stops all DAGs of its file.

    Raises:
        InputError: a file is broken; the message names every broken file.
    """
    folder = _folder(pipelines, module)
    if broken := read_catalogue(folder).broken:
        errors = "\n".join(str(error) for error in broken)
        raise InputError(folder.name, f"{len(broken)} broken, so without a daily DAG\n{errors}")


def _folder(pipelines: str | Path | None, module: MutableMapping[str, Any]) -> Path:
    if pipelines is None:
        return pipelines_folder()
    return (Path(module["__file__"]).parent / pipelines).resolve()


def _broken_dag(errors: Sequence[InputError]) -> DAG:
    """The DAG whose documentation lists each broken file with its error; it has no schedule."""
    problems = "\n".join(str(error) for error in errors)
    with DAG(
        dag_id="strandline_broken",
        description=f"{len(errors)} broken, so without a daily DAG",
        schedule=None,
        start_date=datetime(1970, 1, 1, tzinfo=UTC),
        doc_md=_DOC_OF_BROKEN.format(errors=problems),
        tags=["strandline", "broken"],
    ) as dag:

        @task
        def pipeline_files() -> None:
            raise AirflowFailException(problems)

        pipeline_files()
    return dag
