"""A client of Spark Connect, for the sessions of Connect and Sail."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from strandline.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLIENT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The environment variable that makes PySpark a client of Connect, also in child processes."""
_SECONDS_TO_CONNECT = 10.0
_SECONDS_TO_START = 60.0
"""Of a server on this machine, which may have much else to do."""


def connected(target: str, settings: Mapping[str, str], *, extra: str) -> SparkSession:
    """A new session on a server.

    Args:
        target: the server's address: `sc://host:port`, or in gRPC's form (`unix:/path`).
        settings: settings of the session.
        extra: the extra of this package with the client's packages, for an error.

    Raises:
        InputError: the client's packages are missing.
        TimeoutError: the server accepts no connection.
    """
    # by this PySpark's functions are those of the client; they ask for no JVM
    os.environ[CLIENT_MODE] = "1"
    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415
        from pyspark.sql.connect.client.core import ChannelBuilder  # noqa: PLC0415
        from pyspark.sql.connect.session import SparkSession as Client  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "Spark Connect",
            f"its client lacks a package ({error})",
            f"install strandline[{extra}]",
        ) from None

    class Channel(ChannelBuilder):
        """A channel to an address in gRPC's form."""

        def toChannel(self) -> Any:
            return self._insecure_channel(target)

        @property
        def host(self) -> str:
            return target

    if target.startswith("sc://"):
        server: Any = DefaultChannelBuilder(target)
        seconds = _SECONDS_TO_CONNECT
    else:
        # the path of a socket is not a name of a host, and Sail refuses it as one
        server = Channel([("grpc.default_authority", "localhost")])
        seconds = _SECONDS_TO_START
    builder = Client.builder.channelBuilder(_opened(server, seconds))
    for name, value in settings.items():
        builder = builder.config(name, value)
    return cast("SparkSession", builder.create())


def _opened(server: Any, seconds: float) -> Any:
    """A channel builder whose channel is open; the client itself would retry for ten minutes.

    The client uses this very channel: to close it and open another takes a fifth of a second.

    Raises:
        TimeoutError: the server accepts no connection in time.
    """
    import grpc  # noqa: PLC0415 - the client's packages may be missing

    channel = server.toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=seconds)
    except BaseException as error:
        channel.close()
        if not isinstance(error, grpc.FutureTimeoutError):
            raise
        problem = f"no connection within {seconds:.0f} s"
        raise TimeoutError(problem) from None
    server.toChannel = lambda: channel
    return server


def limit_retries(spark: SparkSession, times: int) -> None:
    """Limit the retries of each failed call: 4 take some seconds, 6 about a minute.

    By default the client retries for ten minutes. A server that was restarted in this time has
    forgotten the session.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - a JVM's PySpark

    spark.client.set_retry_policies([DefaultPolicy(max_retries=times)])


def keep_settings(spark: SparkSession) -> None:
    """Ask a server that nobody else uses once for each setting, until this client changes one.

    The client asks for the same settings with each table that it sends and each query.
    """
    client: Any = spark.client
    client.config = _KeptSettings(client.config)


class _KeptSettings:
    """A client's `config`, with the answers to its questions."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self._ask = ask
        self._answers: dict[bytes, Any] = {}

    def __call__(self, operation: Any) -> Any:
        answers = self._answers
        if operation.WhichOneof("op_type") in {"set", "unset"}:
            try:
                return self._ask(operation)
            finally:  # an answer that is on its way goes with those before it
                self._answers = {}
        question = operation.SerializeToString(deterministic=True)
        if question not in answers:
            answers[question] = self._ask(operation)
        return answers[question]
