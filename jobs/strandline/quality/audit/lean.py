"""Great Expectations, imported without what it takes longest over and no usual audit asks of it.

Import this before anything of Great Expectations. Half of its import goes into three packages: of
SciPy's statistics and of Altair it imports all and asks something only for few expectations; of
SQLAlchemy, where that happens to be installed, it makes an engine for databases, and there are none
here. The first two are loaded when something is asked of them.
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
_WITHOUT = "sqlalchemy"


class _Later(ModuleType):
    """A package that is loaded when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever looks through all modules asks nothing of this one
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class _Lean(MetaPathFinder, Loader):
    """Answers what one thread imports: other threads get all as ever."""

    def __init__(self) -> None:
        self._thread = get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A later package; None: it is none of these.

        Raises:
            ModuleNotFoundError: it is the one to do without.
        """
        if get_ident() != self._thread:
            return None
        if fullname == _WITHOUT:
            raise ModuleNotFoundError(name=fullname)
        return ModuleSpec(fullname, self) if fullname in _LATER else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The package that stands for a later one."""
        return _Later(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing yet."""


def _import() -> None:
    finder = _Lean()
    sys.meta_path.insert(0, finder)
    try:
        import_module("great_expectations")
    finally:
        sys.meta_path.remove(finder)


_import()
