"""HTML pages from templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from strandline.visible import visible


def templates_of(package: str, filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """The templates of a package; values are escaped, and an unknown name is an error.

    Args:
        package: the package with the folder `templates`.
        filters: its own filters by name.
    """
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment


def _shown(value: Any) -> Any:
    """A template's value; control characters of a text, except line breaks, are escaped."""
    return value if isinstance(value, Markup) else visible(str(value), keep="\n")
