"""A quicker import of Great Expectations, without packages that an audit seldom needs.

Import this module before Great Expectations. Half of its import time goes into four packages.
SciPy's statistics, Altair and Spark's machine learning are needed by few expectations, and are
loaded at their first use. SQLAlchemy, if it is installed, is needed for databases only, and is
hidden. So are the data sources of databases and files: an audit reads DataFrames only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType
from typing import Any

_LATER = ("altair", "scipy.stats")
_ML = ("pyspark.ml", "pyspark.ml.feature")
_WITHOUT = "sqlalchemy"
_FLUENT = "great_expectations.datasource.fluent."
_OF_FRAMES = {
    _FLUENT + kind for kind in ("invalid_datasource", "pandas_datasource", "spark_datasource")
}
"""The data sources that an audit uses, and that of a wrong configuration."""


class _Later(ModuleType):
    """A package that is loaded when an attribute of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever looks through all modules asks nothing of this one
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class _MlLater(ModuleType):
    """`pyspark.ml` while Great Expectations takes the one class that it uses, for histograms."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    @staticmethod
    def Bucketizer(**arguments: Any) -> Any:
        """A bucketizer of Spark; the package is loaded at the first one."""
        return import_module("pyspark.ml.feature").Bucketizer(**arguments)


class _NoSource(ModuleType):
    """A module of data sources while Great Expectations takes their classes, which are empty."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _placeholder_of(name: str) -> type[ModuleType] | None:
    """The placeholder of a module that is not imported now; None for every other module."""
    if name in _ML:
        return _MlLater
    of_others = name.startswith(_FLUENT) and name.endswith("_datasource") and name not in _OF_FRAMES
    if of_others or name == f"{_FLUENT}fabric":
        return _NoSource
    return _Later if name in _LATER else None


class _Lean(MetaPathFinder, Loader):
    """An import hook for one thread.

    Until the import ends, other threads that import `pyspark.ml` get its placeholder.
    """

    def __init__(self) -> None:
        self._thread = get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a package that is loaded later; None for every other package.

        Raises:
            ModuleNotFoundError: the package is hidden.
        """
        if get_ident() != self._thread:
            return None
        if fullname == _WITHOUT:
            raise ModuleNotFoundError(name=fullname)
        return None if _placeholder_of(fullname) is None else ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The placeholder of a module."""
        return (_placeholder_of(spec.name) or ModuleType)(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the package is loaded at its first use."""


def _import() -> None:
    finder = _Lean()
    sys.meta_path.insert(0, finder)
    try:
        import_module("great_expectations")
    finally:
        sys.meta_path.remove(finder)
        for name, module in list(sys.modules.items()):
            if isinstance(module, _MlLater | _NoSource):  # who imports it from now on gets it
                _forget(name, module)


def _forget(name: str, module: ModuleType) -> None:
    del sys.modules[name]
    package, _, last = name.rpartition(".")
    if getattr(sys.modules.get(package), last, None) is module:
        delattr(sys.modules[package], last)


_import()
