"""No DAG: makes Airflow show every pipeline file that is broken, as an import error of this file.

A broken file has no daily DAG until it is mended; the DAGs of the other pipelines go on.
"""

from __future__ import annotations

from strandline.errors import InputError
from strandline_airflow.catalogue import read_catalogue
from strandline_airflow.settings import pipelines_folder

_broken = read_catalogue(pipelines_folder()).broken
if _broken:
    _place = pipelines_folder().name
    _said = "\n".join(str(error) for error in _broken)
    raise InputError(_place, f"{len(_broken)} broken, so without a daily DAG\n{_said}")
