"""The pipelines of a folder; a broken file affects no other pipeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow.sdk import Asset, CronDataIntervalTimetable
from airflow.sdk.definitions.asset import BaseAsset
from airflow.sdk.exceptions import AirflowTimetableInvalid

from strandline.errors import InputError, problem_of
from strandline.spec import PipelineSpec, load_spec, spec_files
from strandline.spec.chained import ResultsSpec
from strandline.spec.common import OnAsset


@dataclass(frozen=True)
class Catalogue:
    """The pipelines of a folder.

    Attributes:
        specs: the valid pipelines by name, sorted by name.
        broken: one error for each other file.
    """

    specs: Mapping[str, PipelineSpec]
    broken: tuple[InputError, ...]


def read_catalogue(folder: Path) -> Catalogue:
    """The pipelines of a folder, with an error for each file that defines none.

    It raises nothing: an exception would stop the DAGs of the valid files, too.
    """
    if not folder.is_dir():
        error = InputError("pipelines", f"{folder} is not a folder", "name the folder")
        return Catalogue({}, (error,))
    found: defaultdict[str, list[tuple[str, PipelineSpec]]] = defaultdict(list)
    broken: list[InputError] = []
    for path in spec_files(folder):
        try:
            spec = load_spec(path)
            timetable_of(spec, origin=path.name)
        except InputError as error:
            broken.append(error)
        except Exception as error:  # noqa: BLE001 - whatever one file brings about, others go on
            problem = f"not a pipeline ({problem_of(error)})"
            broken.append(InputError(path.name, problem, "correct it"))
        else:
            found[spec.pipeline].append((path.name, spec))
    for name, definitions in found.items():
        if len(definitions) > 1:
            both = " and ".join(file for file, _ in definitions)
            broken.append(InputError(name, f"defined by {both}", "give each a name of its own"))
    specs = {name: found[name][0][1] for name in sorted(found) if len(found[name]) == 1}
    return Catalogue(specs, tuple(broken))


def timetable_of(spec: PipelineSpec, *, origin: str = "") -> CronDataIntervalTimetable | None:
    """The timetable of the pipeline's daily run, in UTC; None if it is not scheduled by time.

    It has data intervals. A cron expression given to a DAG as text would become Airflow's trigger
    timetable, whose data intervals are empty.

    Raises:
        InputError: the schedule is not a cron expression.
    """
    if spec.cron is None:
        return None
    try:
        timetable = CronDataIntervalTimetable(spec.cron, timezone="UTC")
        timetable.validate()
    except (AirflowTimetableInvalid, ValueError) as error:
        problem = f"schedule: {spec.cron!r} is not a cron expression ({error})"
        way_out = 'write it like "0 6 * * *" (06:00 UTC), or null for runs by hand only'
        raise InputError(origin or spec.pipeline, problem, way_out) from None
    return timetable


def schedule_of(spec: PipelineSpec) -> BaseAsset | CronDataIntervalTimetable | None:
    """The schedule of the pipeline's daily DAG: an asset, a timetable, or None.

    A pipeline over results is scheduled on the asset of the pipeline that publishes them.
    """
    if isinstance(spec, ResultsSpec):
        return published_asset(spec.upstream.pipeline) if spec.when_published else None
    if isinstance(spec.schedule, OnAsset):
        asset = spec.schedule.asset
        return Asset.ref(uri=asset) if "://" in asset else Asset.ref(name=asset)
    return timetable_of(spec)


def published_asset(pipeline: str) -> Asset:
    """The asset of a pipeline's published tables, on which other DAGs can be scheduled."""
    # Not the lake's own address: an asset's identity has to outlive a move of the lake.
    return Asset(name=f"strandline_{pipeline}", uri=f"strandline://{pipeline}/windows")
