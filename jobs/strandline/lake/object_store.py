"""An object store: whether it answers, and creates an object once; a few objects of it.

Credentials come from the environment alone (`AWS_ACCESS_KEY_ID`, …), as delta-rs reads it, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

from strandline.errors import InputError, store_error

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PUBLISHERS = "STRANDLINE_PUBLISHERS"
"""The variable by which a user says that nobody else publishes into the lake: `one`."""
_UNSAFE = ("AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_COPY_IF_NOT_EXISTS")
"""By these delta-rs commits without a conditional put."""
_RACERS, _ROUNDS = 2, 32
"""Two at a time: a store that lets several win lets two; more only wait for each other."""
_WITHOUT = re.compile(r"NotImplemented|NotSupported|\b501\b")


def one_publisher() -> bool:
    """Whether a user has said that there is one publisher, so that none need be kept apart.

    Raises:
        InputError: the variable says something else.
    """
    said = os.environ.get(PUBLISHERS)
    if said not in {None, "", "one"}:
        raise InputError(PUBLISHERS, f"{said!r} is not known", "say one, or leave it out")
    return said == "one"


@dataclass(frozen=True)
class StoreObjects:
    """The objects of a store below a prefix; see `Objects`."""

    store: ObjectStore

    def create(self, name: str, content: bytes) -> bool:
        """Create an object by a conditional put; whether it did not exist."""
        import obstore  # noqa: PLC0415 - an extra
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415

        try:
            obstore.put(self.store, name, content, mode="create")
        except (AlreadyExistsError, PreconditionError):
            return False
        return True

    def put(self, name: str, content: bytes) -> None:
        """Write an object, whether it exists or not."""
        import obstore  # noqa: PLC0415 - an extra

        obstore.put(self.store, name, content)

    def get(self, name: str) -> bytes | None:
        """What an object holds; None: it does not exist."""
        import obstore  # noqa: PLC0415 - an extra

        try:
            return obstore.get(self.store, name).bytes().to_bytes()
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """All objects; a store's own marks of folders left out."""
        import obstore  # noqa: PLC0415 - an extra

        return [
            str(one["path"]) for some in obstore.list(self.store) for one in some if one["path"]
        ]

    def delete(self, name: str) -> None:
        """Remove an object."""
        import obstore  # noqa: PLC0415 - an extra

        obstore.delete(self.store, name)


def objects_at(uri: str) -> StoreObjects:
    """The objects below a URI.

    Raises:
        InputError: the package is missing, or knows no such store.
    """
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra
        from obstore.store import from_url  # noqa: PLC0415
    except ModuleNotFoundError:
        problem = "needs the package obstore, which is not installed"
        raise InputError(f"lake {uri}", problem, "install strandline[s3]") from None
    http = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true", "yes"}
    seconds = [timedelta(seconds=number) for number in (5, 20, 30)]
    try:
        store = from_url(
            uri,
            retry_config={"max_retries": 4, "retry_timeout": seconds[1]},
            client_options={
                "connect_timeout": seconds[0],
                "timeout": seconds[2],
                "allow_http": http,
            },
        )
        return StoreObjects(store)
    except (BaseError, ValueError) as error:
        raise store_error(uri, error) from None


def require_reachable(root: str) -> None:
    """Ask a store once, so that what is wrong with it has one clear message.

    Args:
        root: the URI of a lake.

    Raises:
        InputError: it is no store that is known, has no such bucket, or refuses the credentials;
            or delta-rs is asked to commit without conditional puts beside other publishers.
        RetryableError: it does not answer.
    """
    for name in _UNSAFE:
        if os.environ.get(name) and not one_publisher():
            raise InputError(
                f"lake {root}",
                f"{name} lets delta-rs commit without conditional puts: runs overwrite each other",
                f"leave it out; or, where nobody else ever publishes, set {PUBLISHERS}=one",
            )
    try:
        objects = objects_at(root)
    except InputError:
        if one_publisher():  # who needs no lock needs no store that the lock knows
            return
        raise
    from obstore import list_with_delimiter  # noqa: PLC0415 - an extra
    from obstore.exceptions import BaseError  # noqa: PLC0415

    try:
        list_with_delimiter(objects.store)
    except (BaseError, OSError) as error:
        raise store_error(root, error) from None


@cache
def require_created_once(root: str) -> None:
    """Have threads race to create objects: of each race one may win.

    Args:
        root: the URI of a lake; it is asked once in each process.

    Raises:
        InputError: a store lets several win, or knows no conditional put.
        RetryableError: it does not answer.
    """
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

    objects = objects_at(f"{root}/_probe")
    try:
        winners = race(objects.create, objects.delete)
    except (BaseError, OSError) as error:
        if not _WITHOUT.search(str(error)):
            raise store_error(root, error) from None
        winners = {0}
    if winners != {1}:
        several = f"{max(winners)} of {_RACERS} created the same object"
        raise InputError(
            f"lake {root}",
            f"its store has no conditional puts that hold when they race ({several}), so that "
            "runs would overwrite each other",
            "use a store with them (see docs/object-stores.md); or, where nobody else ever "
            f"publishes, set {PUBLISHERS}=one",
        )


def race(create: Callable[[str, bytes], bool], delete: Callable[[str], None]) -> set[int]:
    """How many of several threads have each created an object, of some objects."""
    found = set()
    with ThreadPoolExecutor(_RACERS) as racers:
        for name in (uuid4().hex for _ in range(_ROUNDS)):
            contents = [f"{name} {number}".encode() for number in range(_RACERS)]
            won = racers.map(create, [name] * _RACERS, contents)
            found.add(sum(won))
            delete(name)
    return found
