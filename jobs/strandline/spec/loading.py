"""Reading pipeline files: every error names the file, the YAML path, the value and the way out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from strandline.errors import InputError, storage_error
from strandline.model.command import option_of
from strandline.spec.chained import ChainedSpec
from strandline.spec.documents import line_of, read_document
from strandline.spec.join import IntervalJoinSpec, WindowJoinSpec
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.runnable import AnySpec, not_yet, runnable
from strandline.spec.windowed import WindowedSpec

TEST_SUFFIX = ".test.yaml"
"""The suffix of a pipeline's test file, in the same folder as the pipeline's file."""
OVERRIDABLE = {"allowed_lateness": ("allowed_lateness",), "bound": ("watermark", "bound")}
"""The rules that a run by hand may override, with their paths in the file."""


def parse_any(content: Any, *, origin: str) -> AnySpec:
    """The spec of a parsed YAML document, whether the engine supports it yet or not.

    Raises:
        InputError: keys or values are wrong; the message has a line for each.
    """
    if not isinstance(content, dict):
        raise InputError(origin, "not a pipeline", "a pipeline file is a map of keys")
    try:
        return _shape(content).model_validate(content)
    except ValidationError as error:
        places = {key: place for place, key in enumerate(content)}
        found = sorted(error.errors(), key=lambda e: places.get((*e["loc"], None)[0], len(places)))
        lines = [line_of(origin, detail) for detail in found]
        raise InputError(origin, "not a valid pipeline\n  " + "\n  ".join(lines)) from None


def parse_spec(content: Any, *, origin: str) -> PipelineSpec:
    """The spec of a parsed YAML document.

    Raises:
        InputError: keys or values are wrong (the message has a line for each), or the engine does
            not support such a pipeline yet.
    """
    return runnable(parse_any(content, origin=origin), origin=origin)


def _shape(content: dict[Any, Any]) -> type[AnySpec]:
    """The model for a document, by the keys that only one kind of pipeline has."""
    source, join = content.get("source"), content.get("join")
    if "sources" in content or "join" in content:
        by_interval = isinstance(join, dict) and "interval" in join
        return IntervalJoinSpec if by_interval else WindowJoinSpec
    chained = isinstance(source, dict) and "pipeline" in source
    return ChainedSpec if chained else PipelineSpec


def load_spec(
    path: Path, overrides: Mapping[str, str] | None = None, *, behind: tuple[str, ...] = ()
) -> PipelineSpec:
    """The spec of one pipeline file.

    Args:
        path: the file; a pipeline whose results it reads is defined in the same folder.
        overrides: rules in place of the file's: `allowed_lateness`, `bound`.
        behind: the pipelines that read this pipeline's results, to find cycles.

    Raises:
        InputError: the file is missing, is not YAML or not a valid pipeline; the engine does not
            support such a pipeline yet; the pipeline whose results it reads does not exist; or its
            function does not exist.
    """
    content = read_document(path)
    origin = path.name
    for name, value in (overrides or {}).items():
        if name == "allowed_lateness" and isinstance(content, dict):
            _require_windows(content, option_of(name))
        origin += f" with {option_of(name)} {value}"
        *above, key = OVERRIDABLE[name]
        part = content
        for step in above:
            part = part.get(step) if isinstance(part, dict) else None
        if isinstance(part, dict):  # else the file itself is wrong, which is said
            part[key] = value
        elif isinstance(content, dict) and (problem := _no_watermark_of_its_own(content)):
            raise InputError(option_of(name), *problem)
    spec = parse_any(content, origin=origin)
    if isinstance(spec, WindowedSpec) and spec.process is not None:
        process = spec.process.found_in(path.parent, f"{origin}: process")
        spec = spec.model_copy(update={"process": process})
    if not isinstance(spec, ChainedSpec):
        return runnable(spec, origin=origin)
    return _over_its_upstream(spec, path, origin, behind)


def _require_windows(content: dict[Any, Any], option: str) -> None:
    """Refuse a lateness for one run where there are no windows that could be late."""
    if _shape(content) is IntervalJoinSpec:
        raise InputError(
            option,
            "an interval join has no allowed lateness: a record below the watermark is late",
            "edit the bounds of its watermarks in the pipeline's file",
        )


def _no_watermark_of_its_own(content: dict[Any, Any]) -> tuple[str, str] | None:
    """The reason why a pipeline has no bound, and the way out; None if it has a watermark."""
    shape = _shape(content)
    if shape is ChainedSpec:
        upstream = content["source"]["pipeline"]
        problem = f"belongs to a watermark, and this pipeline uses the one of {upstream}"
        return problem, f"rebuild {upstream} so, or edit its file"
    if shape is not PipelineSpec:
        problem = "is ambiguous: each source has its own watermark"
        return problem, "edit the pipeline's file"
    return None


def _over_its_upstream(
    spec: ChainedSpec, path: Path, origin: str, behind: tuple[str, ...]
) -> PipelineSpec:
    """A pipeline that reads results, combined with the pipeline that publishes them."""
    place, name = f"{origin}: source.pipeline", spec.source.pipeline
    after = (*behind, spec.pipeline)
    if name in after:
        around = " reads ".join((*after[after.index(name) :], name))
        raise InputError(place, f"a cycle: {around}", "read another pipeline, or a landing table")
    if not_yet(spec):
        return runnable(spec, origin=origin)
    try:
        upstream = find_spec(path.parent, name, behind=after)
    except InputError as error:
        if error.place == name:  # no file, or several; an error in its file names that file
            raise InputError(f"{place}: {name}", error.problem, error.way_out) from None
        raise
    if upstream.window.all_time:
        raise InputError(
            place,
            f"the windows of {name} have no end, which would be the event time of a result",
            "read the results of other windows",
        )
    if not upstream.firings:
        raise InputError(
            place,
            f"{name} keeps no firings, which say when each of its results was emitted",
            f"write firings: true into the file of {name}",
        )
    return runnable(spec.over(upstream), origin=origin)


def require_folder(folder: Path) -> None:
    """Check that the folder of pipeline files is a folder that can be read.

    Raises:
        InputError: it is a file, does not exist, or may not be read.
    """
    if not folder.is_dir():
        place = "--pipelines"
        raise InputError(place, f"{folder} is not a folder", "name the pipelines' folder")
    try:
        next(folder.iterdir(), None)  # `glob` finds nothing in a folder that may not be read
    except OSError as error:
        place = f"--pipelines {folder}"
        raise storage_error(place, error, to_read=True) or error from None


def spec_files(folder: Path) -> list[Path]:
    """The pipeline files of a folder, sorted by name, without test files."""
    files = (p for p in folder.glob("*.y*ml") if p.suffix in {".yaml", ".yml"})
    return sorted(path for path in files if not path.name.endswith(TEST_SUFFIX))


def find_spec(
    folder: Path,
    pipeline: str,
    overrides: Mapping[str, str] | None = None,
    *,
    behind: tuple[str, ...] = (),
) -> PipelineSpec:
    """The spec of a pipeline by its name; errors in files of other pipelines do not matter.

    `overrides`, `behind`: see `load_spec`.

    Raises:
        InputError: no file or several files define the pipeline, or its file is wrong.
    """
    return load_spec(file_of(folder, pipeline), overrides, behind=behind)


def file_of(folder: Path, pipeline: str) -> Path:
    """The file that defines a pipeline.

    Raises:
        InputError: no file or several files define it.
    """
    require_folder(folder)
    files = files_by_name(folder)
    if pipeline not in files:
        known = ", ".join(files) or "none"
        raise InputError(pipeline, "no such pipeline", f"the folder {folder}/ has: {known}")
    return only_one(pipeline, files[pipeline])


def files_by_name(folder: Path) -> dict[str, list[Path]]:
    """The pipeline files of a folder by the names of their pipelines, in the order of the files."""
    found: dict[str, list[Path]] = {}
    for path in spec_files(folder):
        found.setdefault(name_in(path), []).append(path)
    return found


def only_one(pipeline: str, files: Sequence[Path]) -> Path:
    """The file that defines a pipeline, of all files with its name.

    Raises:
        InputError: there are several.
    """
    if len(files) > 1:
        both = " and ".join(path.name for path in files)
        raise InputError(pipeline, f"defined by {both}", "give each pipeline a name of its own")
    return files[0]


def name_in(path: Path) -> str:
    """The name of the pipeline in a file; the file's stem if the file cannot be read."""
    try:
        content = read_document(path, unique_keys=False)
    except InputError:
        return path.stem
    name = content.get("pipeline") if isinstance(content, dict) else None
    return name if isinstance(name, str) else path.stem
