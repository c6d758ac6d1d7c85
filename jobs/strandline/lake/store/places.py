"""Places of tables and files: local paths, and URIs of object stores.

A path may contain any characters. Only this module converts paths to URIs and back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from strandline.errors import InputError

_OF_A_STORE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_OF_THIS_MACHINE = re.compile(r"file:(?=/)", re.IGNORECASE)
_OF_HADOOP = re.compile("s3[an]://", re.IGNORECASE)
"""Hadoop's schemes of S3; delta-rs and others use s3://."""
_NO_HOSTS = {"", "localhost"}
_NOT_IN_DELTA = re.compile(r"[\[\]|^\\\x00-\x1f\x7f\ud800-\udfff]|%[0-9A-Fa-f]{2}")
"""Folders below which delta-rs opens no table: it decodes %41, and rejects some characters."""


def is_uri(place: str) -> bool:
    """Whether a place is a URI: `s3://bucket/lake`, `file:///lake`; not `a:b` or `lake#2`."""
    return bool(_OF_A_STORE.match(place) or _OF_THIS_MACHINE.match(place))


def place_of(text: str, named: str) -> str:
    """The place in a user's text: an absolute local path, or an object store's URI.

    `lake#2` is a folder of that name, and so is `file:///home/me/lake%232`.

    Args:
        text: a path, which may be relative, or a URI.
        named: the option or variable with the text, for an error.

    Raises:
        InputError: it is empty, a file URI of another machine, a store's URI without a bucket, or a
            folder that delta-rs cannot open.
    """
    if not text:
        raise InputError(named, "empty", "name a folder, or the URI of an object store")
    if not is_uri(text):
        path = str(Path(text).absolute())
    elif _OF_THIS_MACHINE.match(text):
        path = _path_of_uri(text, named)
    else:
        if not urlsplit(text).netloc:
            raise InputError(f"{named} {text}", "names no bucket", "write it as s3://BUCKET/PATH")
        return _OF_HADOOP.sub("s3://", text.rstrip("/"))
    return require_possible(path, named)


def require_possible(path: str, named: str) -> str:
    """Check that a local path can hold Delta tables, before it is read or written.

    Args:
        path: an absolute path; delta-rs follows links.
        named: the option or variable with the path, for an error.

    Raises:
        InputError: delta-rs cannot open a table there.
    """
    try:
        resolved = str(Path(path).resolve())
    except (OSError, RuntimeError, ValueError):
        resolved = ""
    found = _NOT_IN_DELTA.search(path) or _NOT_IN_DELTA.search(resolved)
    if found:
        raise InputError(
            f"{named} {path}",
            f"delta-rs opens no table below a path with {found[0]!r}",
            "give it another name: without [ ] | ^ \\, control characters, or a % before two "
            "hexadecimal digits",
        )
    return path


def path_of(place: str) -> Path | None:
    """The local path of a place; None if it is not on this machine.

    Args:
        place: an absolute path, or a URI in the form of delta-rs and the engines.
    """
    if _OF_THIS_MACHINE.match(place):
        return Path(unquote(urlsplit(place).path))
    return None if is_uri(place) else Path(place)


def uri_of(place: str) -> str:
    """The URI of a place: of `/lake#2` it is `file:///lake%232`; a store's URI is unchanged."""
    return place if is_uri(place) else Path(place).as_uri()


def below(root: str, uri: str) -> str:
    """A file's path below a table's root, both in the form of delta-rs; quoting is unchanged."""
    start = root.rstrip("/") + "/"
    return uri.removeprefix(start).removeprefix(start.removeprefix("file://"))


_TABLES_AT: dict[object, Callable[[str, int | None], str]] = {}


def introduce(spark: object, table_at: Callable[[str, int | None], str]) -> None:
    """Register the form in which a session's reader takes the place of a Delta table."""
    _TABLES_AT[spark] = table_at


def table_at(spark: object, place: str, version: int | None = None) -> str:
    """The place of a Delta table as a session's reader takes it; unchanged for other sessions.

    `version`: the version to read; None: the newest.

    It imports no PySpark, so that reading the ledger, as Airflow's pages do, does not load it.
    """
    found = _TABLES_AT.get(spark)
    return place if found is None else found(place, version)


def for_hadoop(place: str) -> str:
    """A place in Hadoop's form, with s3a:// for S3."""
    return re.sub("^s3://", "s3a://", place)


def of_hadoop(location: str) -> str:
    """The place in a text of Hadoop, which writes local paths unquoted, as `file:/a b`."""
    found = re.fullmatch(r"file:(?://)?(/.*)", location, re.DOTALL)
    return found[1] if found else location


def _path_of_uri(uri: str, named: str) -> str:
    parts = urlsplit(uri)
    if parts.netloc.lower() not in _NO_HOSTS:
        raise InputError(f"{named} {uri}", "names another machine", "give a path of this one")
    if parts.query or parts.fragment or uri.endswith(("?", "#")):
        raise InputError(
            f"{named} {uri}",
            "a URI ends at ? and #",
            "write them %3F and %23, or give the path without file://",
        )
    return str(Path(unquote(parts.path)))
