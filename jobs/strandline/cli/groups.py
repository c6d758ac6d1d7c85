"""Groups of options: a command takes a group as one argument, users type its options."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from strandline.cli.options import LakeAt, Pipelines, Remote, TrustThisMachine, not_empty
from strandline.errors import StrandlineError, error_of

if TYPE_CHECKING:
    from strandline.lake.sessions.choice import EngineChoice
    from strandline.lake.store.lake import Lake
    from strandline.spec import PipelineSpec

T = TypeVar("T")
PLACES: dict[str, str | None] = {"pipelines": None, "lake": None}
"""The places given before the command's name."""


def command_typed(arguments: Sequence[str]) -> str:
    """The command and the word after it, without the places that may stand before it."""
    words = iter(arguments)
    for word in words:
        if word.removeprefix("--") in PLACES:
            next(words, None)
        elif not word.startswith("-"):
            return " ".join(["strandline", word, *islice(words, 1)])
    return "strandline"


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer, with each group of options replaced by its options.

    A group is a parameter whose type is a dataclass with fields annotated as typer's options. Two
    groups of a command have no field name in common.
    """
    own = _parameters_of(command)
    groups: dict[str, type[Any]] = {
        one.name: one.annotation
        for one in own
        if isinstance(one.annotation, type) and is_dataclass(one.annotation)
    }
    options = [
        option
        for one in own
        for option in (_parameters_of(groups[one.name]) if one.name in groups else [one])
    ]

    @wraps(command)
    def called(**given: Any) -> None:
        values = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **values)

    called.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in options}
    return called


def _parameters_of(called: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a command, or the fields of a group, to be given by their names."""
    own = inspect.signature(called, eval_str=True).parameters.values()
    return [one.replace(kind=Parameter.KEYWORD_ONLY) for one in own]


@dataclass(frozen=True)
class Places:
    """The places of pipeline files and tables, from options or the environment.

    The options may stand before or after the command's name.
    Each method raises InputError for a place that is given as an empty text.
    """

    pipelines: Pipelines = None
    lake: LakeAt = None

    @property
    def folder(self) -> Path:
        """The folder of the pipeline files."""
        return Path(_place("--pipelines", self.pipelines))

    @property
    def root(self) -> Lake:
        """The lake.

        Raises:
            InputError: the place cannot hold tables, or an object store refuses access.
            RetryableError: the object store does not answer.
        """
        from strandline.lake.store.lake import Lake  # noqa: PLC0415

        lake = Lake.at(_place("--lake", self.lake))
        lake.require_reachable()
        return lake

    def spec(self, pipeline: str, overrides: Mapping[str, str] | None = None) -> PipelineSpec:
        """A pipeline by its name.

        Args:
            pipeline: the pipeline's name.
            overrides: rules in place of the file's: `allowed_lateness`, `bound`.

        Raises:
            InputError: there is no such pipeline, or its file is wrong.
        """
        from strandline.spec import find_spec  # noqa: PLC0415

        return find_spec(self.folder, pipeline, overrides)

    def each(self, do: Callable[[PipelineSpec], T]) -> Iterator[tuple[str, T | StrandlineError]]:
        """The result for each pipeline by its name; the error of one does not stop the others.

        Raises:
            InputError: the folder of the pipeline files cannot be read.
        """
        from strandline.spec import (  # noqa: PLC0415
            files_by_name,
            load_spec,
            only_one,
            require_folder,
        )

        require_folder(self.folder)
        for name, files in files_by_name(self.folder).items():
            try:
                yield name, do(load_spec(only_one(name, files)))
            except Exception as error:  # noqa: BLE001 - one pipeline's trouble is not the others'
                yield name, error_of(name, error)


def _place(option: str, given: str | None) -> str:
    name = option.removeprefix("--")
    named = PLACES[name] if given is None else given
    if named is not None:
        return not_empty(option, named)
    return os.environ.get(f"STRANDLINE_{name.upper()}") or name


@dataclass(frozen=True)
class EngineOptions:
    """The engine of a command, and its address."""

    engine: Annotated[
        str | None,
        typer.Option(
            help="spark, connect or sail. [STRANDLINE_ENGINE, engine: in the file, spark]"
        ),
    ] = None
    master: Annotated[
        str | None,
        typer.Option(help="Spark master, for the engine spark. [spark-submit's master, or local]"),
    ] = None
    remote: Remote = None
    trust_this_machine: TrustThisMachine = False

    def choice(self, spec: PipelineSpec | None = None) -> EngineChoice:
        """The engine: of the options, else of the environment, else of the pipeline's file.

        Raises:
            InputError: the engine is unknown, or an option contradicts it.
        """
        from strandline.lake.sessions.choice import choose  # noqa: PLC0415

        return choose(
            os.environ,
            engine=self.engine,
            master=self.master,
            remote=self.remote,
            trust_this_machine=self.trust_this_machine,
            of_pipeline=None if spec is None else spec.engine,
        )
