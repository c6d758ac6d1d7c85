"""The key `process`: a user-defined Python function in a module beside the pipeline's file."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from strandline.errors import InputError
from strandline.spec import described
from strandline.spec.functions import SIMPLE_TYPES, arrow_type
from strandline.spec.values import SpecModel

ARGUMENTS = ("key", "window", "records", "watermark")
"""The arguments of the function, in order."""
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_OF_TYPES = re.compile(r"\w+(?!\w*:)")
"""Words in the text of a type that are not names of fields."""


class Process(SpecModel):
    """A function with the sources of its module or package.

    Attributes:
        name: `package.module:function`.
        files: sources by path below the folder of the pipeline files: the module, or its whole
            package. They are part of the pipeline's fingerprint.
    """

    name: str
    files: dict[str, str] = Field(default_factory=dict)

    @property
    def module(self) -> str:
        """`package.module`."""
        return self.name.partition(":")[0]

    @property
    def function(self) -> str:
        """The function's own name."""
        return self.name.partition(":")[2]

    def found_in(self, folder: Path, place: str) -> Process:
        """The function with its sources, which are read but not run.

        Args:
            folder: the folder of the pipeline files.
            place: the place of its name, for errors.

        Raises:
            InputError: the module or function does not exist, or has other arguments.
        """
        top = self.module.partition(".")[0]
        if top in sys.stdlib_module_names or _is_installed(top, folder):
            problem = f"{top} is a module of Python's, or an installed one"
            raise InputError(place, problem, "give yours another name")
        files = dict(_files_of(folder, top, whole="." in self.module))
        path = self.module.replace(".", "/") + ".py"
        if path not in files:
            problem = f"there is no {path} beside the pipeline files"
            raise InputError(place, problem, f"put it into {folder.name}/, or correct the name")
        _check(files[path], path, self.function, place)
        return self.model_copy(update={"files": files})


def _named(value: Any) -> Any:
    if isinstance(value, Process):
        return value
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        msg = "not the name of a function; write package.module:function"
        raise ValueError(msg)
    return Process(name=value)


def _kind(value: Any) -> str:
    text = re.sub(r"\s", "", value) if isinstance(value, str) else ""
    text = _OF_TYPES.sub(lambda word: word[0].lower(), text)
    try:
        arrow_type(text)
    except ValueError:
        msg = (
            f"not a type that a function can return; write one of {', '.join(SIMPLE_TYPES)}, "
            "decimal(p,s), or array<…> or struct<name:…,name:…> of such"
        )
        raise ValueError(msg) from None
    return text


ProcessField = Annotated[
    Process, BeforeValidator(_named), WithJsonSchema(described.text(_NAME.pattern))
]
ReturnedType = Annotated[str, BeforeValidator(_kind), WithJsonSchema({"type": "string"})]
"""The type of a column that a function returns, by its name in Spark."""


def _is_installed(top: str, folder: Path) -> bool:
    """Whether a module of this name is installed, so that it would be imported instead."""
    found = PathFinder.find_spec(top)
    if found is None:
        return False
    places = [found.origin, *(found.submodule_search_locations or ())]
    own = folder.resolve()
    return not any(place and own in Path(place).resolve().parents for place in places)


def _files_of(folder: Path, top: str, *, whole: bool) -> Iterator[tuple[str, str]]:
    """The source of a module, or of all modules of a package, by path."""
    paths = sorted((folder / top).rglob("*.py")) if whole else [folder / f"{top}.py"]
    for path in paths:
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8")


def _check(source: str, path: str, name: str, place: str) -> None:
    try:
        tree = ast.parse(source, path)
    except (SyntaxError, ValueError) as error:
        raise InputError(place, f"{path} is no Python ({error})", "correct it") from None
    functions = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]
    if not functions:
        known = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        problem = f"{path} defines no function {name}"
        raise InputError(place, problem, f"it has {', '.join(known) or 'none'}")
    function = functions[-1]
    if isinstance(function, ast.AsyncFunctionDef) or not _takes_all(function.args):
        raise InputError(
            place,
            f"{path}: {name} cannot be called with {', '.join(ARGUMENTS)}",
            f"define it as def {name}({', '.join(ARGUMENTS)})",
        )


def _takes_all(arguments: ast.arguments) -> bool:
    """Whether a function can be called with all arguments by position."""
    most = len(arguments.posonlyargs) + len(arguments.args)
    needed = most - len(arguments.defaults)
    fits = needed <= len(ARGUMENTS) and (most >= len(ARGUMENTS) or arguments.vararg is not None)
    return fits and all(default is not None for default in arguments.kw_defaults)
