"""The pipelines that there are: one broken file breaks its own pipeline only."""

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
        specs: the pipelines that can run, by name, sorted by it.
        broken: what is wrong with the other files, an error each.
    """

    specs: Mapping[str, PipelineSpec]
    broken: tuple[InputError, ...]

    @property
    def names(self) -> list[str]:
        """The names of the pipelines that can run."""
        return list(self.specs)


def read_catalogue(folder: Path) -> Catalogue:
    """The pipelines of a folder; it raises nothing, since a DAG file has others to serve."""
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
            broken.append(InputError(path.name, f"not a pipeline ({problem_of(error)})", "mend it"))
        else:
            found[spec.pipeline].append((path.name, spec))
    for name, definitions in found.items():
        if len(definitions) > 1:
            both = " and ".join(file for file, _ in definitions)
            broken.append(InputError(name, f"defined by {both}", "give each a name of its own"))
    specs = {name: found[name][0][1] for name in sorted(found) if len(found[name]) == 1}
    return Catalogue(specs, tuple(broken))


def timetable_of(spec: PipelineSpec, *, origin: str = "") -> CronDataIntervalTimetable | None:
    """When the pipeline's daily run is due, in UTC; null: not by the clock.

    `schedule="0 6 * * *"` as a plain text would give Airflow's trigger timetable, whose data
    intervals are empty.

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
    """What the pipeline's DAG is scheduled on: of one that reads results, these."""
    if isinstance(spec, ResultsSpec):
        return published_asset(spec.upstream.pipeline) if spec.when_published else None
    if isinstance(spec.schedule, OnAsset):
        asset = spec.schedule.asset
        return Asset.ref(uri=asset) if "://" in asset else Asset.ref(name=asset)
    return timetable_of(spec)


def published_asset(pipeline: str) -> Asset:
    """The pipeline's published tables, as something that other DAGs can be scheduled on."""
    # Not the lake's own address: an asset's identity has to outlive a move of the lake.
    return Asset(name=f"strandline_{pipeline}", uri=f"strandline://{pipeline}/windows")
