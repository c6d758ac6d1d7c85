"""A quicker import of Great Expectations, without packages that an audit seldom needs.

Import this module before Great Expectations. Half of its import time goes into four packages.
SciPy's statistics, Altair and Spark's machine learning are needed by few expectations, and are
loaded at their first use. SQLAlchemy, if it is installed, is needed for databases only, and is
hidden.
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
        return ModuleSpec(fullname, self) if fullname in _LATER + _ML else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The placeholder of a package that is loaded later."""
        return (_MlLater if spec.name in _ML else _Later)(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the package is loaded at its first use."""


def _import() -> None:
    finder = _Lean()
    sys.meta_path.insert(0, finder)
    try:
        import_module("great_expectations")
    finally:
        sys.meta_path.remove(finder)
        for name in _ML:
            if isinstance(sys.modules.get(name), _MlLater):
                del sys.modules[name]
        pyspark = sys.modules.get("pyspark")
        if isinstance(getattr(pyspark, "ml", None), _MlLater):
            delattr(pyspark, "ml")


_import()
