"""The choice of a command's engine: by its options, else the environment, else the YAML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args
from urllib.parse import urlparse

from strandline.errors import InputError
from strandline.spec.common import EngineName

ENGINE, REMOTE, TRUST = "STRANDLINE_ENGINE", "STRANDLINE_REMOTE", "STRANDLINE_TRUST_THIS_MACHINE"
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
_HAS_TOKEN = re.compile(r";\s*token\s*=", re.IGNORECASE)


@dataclass(frozen=True)
class EngineChoice:
    """The engine of a command, and its address.

    Attributes:
        name: `spark`, `connect` or `sail`.
        master: for `spark`: Spark's master; None: spark-submit's, or this machine.
        remote: for `connect`: the address of the Spark Connect server.
        trust_this_machine: for `sail`: whether it runs although others may log in on this machine.
    """

    name: EngineName = "spark"
    master: str | None = None
    remote: str | None = None
    trust_this_machine: bool = False


def choose(
    environment: Mapping[str, str],
    *,
    engine: str | None = None,
    master: str | None = None,
    remote: str | None = None,
    trust_this_machine: bool = False,
    of_pipeline: EngineName | None = None,
) -> EngineChoice:
    """The engine of a command.

    Args:
        environment: the environment variables of the process.
        engine: the option `--engine`, if it is given.
        master: the option `--master`; without another choice it means the engine `spark`.
        remote: the option `--remote`; without `--engine` it means the engine `connect`.
        trust_this_machine: the option `--trust-this-machine`.
        of_pipeline: the key `engine` of the pipeline's file.

    Raises:
        InputError: the engine is unknown, or an option contradicts it.
    """
    implied = "connect" if remote is not None else None
    place, known = _named(
        ("--engine", engine),
        ("--remote", implied),
        (ENGINE, environment.get(ENGINE)),
        ("engine", of_pipeline),
    )
    for option, given, of in (("--master", master, "spark"), ("--remote", remote, "connect")):
        if given is not None and known != of:
            raise InputError(
                option,
                f"is for the engine {of}, and {place} says {known}",
                f"leave it out, or give --engine {of}",
            )
    if known != "connect":
        trusted = trust_this_machine or _is_yes(environment.get(TRUST))
        return EngineChoice(known, master=master, trust_this_machine=trusted)
    where = "--remote" if remote is not None else REMOTE
    return EngineChoice(known, remote=_address(where, remote or environment.get(REMOTE)))


def engine_named(environment: Mapping[str, str], of_pipeline: EngineName | None) -> EngineName:
    """The name of the engine of a pipeline's runs without options; it may lack an address.

    Raises:
        InputError: the environment names an unknown engine.
    """
    return _named((ENGINE, environment.get(ENGINE)), ("engine", of_pipeline))[1]


def _named(*choices: tuple[str, str | None]) -> tuple[str, EngineName]:
    """The first engine that is named, or else `spark`, and the place that names it."""
    place, name = next(((where, what) for where, what in choices if what), ("--engine", "spark"))
    known = next((one for one in ENGINES if one == name), None)
    if known is None:
        raise InputError(place, f"{name!r} is no engine", f"give one of {', '.join(ENGINES)}")
    return place, known


def _is_yes(value: str | None) -> bool:
    return value is not None and value.strip().lower() in {"1", "true", "yes"}


def _address(place: str, remote: str | None) -> str:
    """The address of a Spark Connect server, checked without a connection."""
    form = "sc://host:port, with ;use_ssl=true where the server has a certificate"
    if not remote:
        raise InputError("--remote", "the engine connect needs a server", f"give {form}")
    if _HAS_TOKEN.search(remote):
        raise InputError(
            place,
            "has a token, which would be visible in lists of processes and in logs",
            "put it into the environment as SPARK_CONNECT_AUTHENTICATE_TOKEN",
        )
    try:
        address = urlparse(remote)
        is_address = address.scheme == "sc" and bool(address.hostname) and address.port != 0
    except ValueError:
        is_address = False
    if not is_address or address.username or address.password:
        raise InputError(place, f"{remote!r} is not an address of Spark Connect", f"give {form}")
    return remote
