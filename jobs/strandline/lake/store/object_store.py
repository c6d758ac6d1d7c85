"""An object store: checks of its access and its conditional puts, and single objects.

Credentials come from the environment only (`AWS_ACCESS_KEY_ID`, …), as for delta-rs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING
from uuid import uuid4

from strandline.errors import InputError, store_error

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

PUBLISHERS = "STRANDLINE_PUBLISHERS"
"""The environment variable by which a user declares a single publisher: `one`."""
_UNSAFE = ("AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_COPY_IF_NOT_EXISTS")
"""Environment variables by which delta-rs commits without conditional puts."""
_RACERS, _ROUNDS = 2, 32
"""The numbers of racing threads and of rounds; two threads suffice to find a store without them."""
_WITHOUT = re.compile(r"NotImplemented|NotSupported|\b501\b")


def one_publisher() -> bool:
    """Whether the user has declared a single publisher, so that no lock is needed.

    Raises:
        InputError: the variable has another value.
    """
    value = os.environ.get(PUBLISHERS)
    if value not in {None, "", "one"}:
        raise InputError(PUBLISHERS, f"{value!r} is not known", "set it to `one`, or leave it out")
    return value == "one"


@dataclass(frozen=True)
class StoreObjects:
    """The objects of a store below a prefix, by name."""

    store: ObjectStore

    def create(self, name: str, content: bytes) -> bool:
        """Create an object by a conditional put; False if it exists."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415

        try:
            self.store.put(name, content, mode="create")
        except (AlreadyExistsError, PreconditionError):
            return False
        return True

    def put(self, name: str, content: bytes) -> None:
        """Write an object; an existing one is replaced."""
        self.store.put(name, content)

    def get(self, name: str) -> bytes | None:
        """The content of an object; None if it does not exist."""
        try:
            return self.store.get(name).bytes().to_bytes()
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """The names of all objects, without a store's marks of folders."""
        objects = chain.from_iterable(self.store.list())
        return [str(one["path"]) for one in objects if one["path"]]

    def delete(self, name: str) -> None:
        """Remove an object."""
        self.store.delete(name)


def objects_at(uri: str) -> StoreObjects:
    """The objects below a URI.

    Raises:
        InputError: the package is missing, or does not support the store.
    """
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra
        from obstore.store import from_url  # noqa: PLC0415
    except ModuleNotFoundError:
        problem = "needs the package obstore, which is not installed"
        raise InputError(f"lake {uri}", problem, "install strandline[s3]") from None
    http = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true", "yes"}
    retries: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}
    client: ClientConfig = {
        "connect_timeout": timedelta(seconds=5),
        "timeout": timedelta(seconds=30),
        "allow_http": http,
    }
    try:
        return StoreObjects(from_url(uri, retry_config=retries, client_options=client))
    except (BaseError, ValueError) as error:
        raise store_error(uri, error) from None


def require_reachable(root: str) -> None:
    """Check the access to a store by one request, so that problems have a clear message.

    Args:
        root: the URI of a lake.

    Raises:
        InputError: the kind of store is unknown, the bucket does not exist, or the credentials are
            refused; or the environment switches conditional puts off without declaring a single
            publisher.
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
        if one_publisher():  # obstore serves only the lock, which is not needed
            return
        raise
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

    try:
        objects.store.list_with_delimiter()
    except (BaseError, OSError) as error:
        raise store_error(root, error) from None


@cache
def require_created_once(root: str) -> None:
    """Check a store's conditional puts by threads that race to create the same objects.

    Args:
        root: the URI of a lake; each process checks it once.

    Raises:
        InputError: several threads have created the same object, or the store has no conditional
            puts.
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
        most = max(winners)
        seen = f"{most} of {_RACERS} created the same object" if most > 1 else "not one was created"
        raise InputError(
            f"lake {root}",
            f"its store has no conditional puts that hold when they race ({seen}), so that "
            "runs would overwrite each other",
            "use a store with them (see docs/object-stores.md); or, where nobody else ever "
            f"publishes, set {PUBLISHERS}=one",
        )


def race(create: Callable[[str, bytes], bool], delete: Callable[[str], None]) -> set[int]:
    """How many threads created an object, of each round; {1} if the puts are conditional."""
    found = set()
    with ThreadPoolExecutor(_RACERS) as racers:
        for name in (uuid4().hex for _ in range(_ROUNDS)):
            contents = [f"{name} {number}".encode() for number in range(_RACERS)]
            won = racers.map(create, [name] * _RACERS, contents)
            found.add(sum(won))
            delete(name)
    return found
