"""Apache Spark on a Spark Connect server, for which the client needs no Java."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4
from zipfile import ZipFile

import pyspark

import strandline
from strandline.errors import InputError, RetryableError, telling_line
from strandline.lake.sessions.exceptions import require_answers
from strandline.lake.sessions.protocol import ApacheSession, register
from strandline.lake.sessions.remote import connected, limit_retries
from strandline.lake.sessions.settings import EVERYWHERE, FEW_ROWS
from strandline.spec.common import EngineName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASKS = 8
"""The number of tasks that write probe files: a client does not know the number of executors."""
_RETRIES, _LAST_RETRIES = 6, 3
"""The retries of a failed call: about a minute in all, and some seconds once the run has failed."""
_PLACE = "engine connect"
_CATALOG, _NO_CATALOG = "spark.sql.catalog.spark_catalog", "builtin"
"""The setting of Spark's catalog, and its value for a catalog without Delta tables."""
_TOKEN_IS_WRONG = ("UNAUTHENTICATED", "PERMISSION_DENIED")


@dataclass(frozen=True)
class ConnectSession(ApacheSession):
    """A session on a server; see `EngineSession`."""

    spark: SparkSession
    version: str
    engine: EngineName = "connect"
    on_one_machine: bool = False
    for_few_rows: Mapping[str, str] = field(default_factory=lambda: FEW_ROWS)
    parallelism: int = _TASKS

    @property
    def has_ended(self) -> bool:
        """Whether the server answers no more, or was restarted and has forgotten the session.

        It is asked after a failure, so all calls from then on give up soon.
        """
        limit_retries(self.spark, _LAST_RETRIES)
        try:
            require_answers(self.spark)
        except Exception:  # noqa: BLE001 - gRPC has its own errors, and PySpark others
            return True
        return False

    def computed(self, rows: DataFrame) -> DataFrame:
        """The rows, computed once and kept by the server's executors.

        The checkpoint is of a view, whose plan is flat: PySpark's own command for it copies the
        plan by a parser that refuses more than a hundred levels, which a join has.
        """
        view = f"strandline_{uuid4().hex}"
        rows.createTempView(view)
        try:
            return self.spark.table(view).localCheckpoint()
        finally:
            self.spark.catalog.dropTempView(view)


def start_connect(
    remote: str, app_name: str, conf: Mapping[str, str] | None = None
) -> ConnectSession:
    """Open a session on a server, and check that the server meets the requirements.

    Args:
        remote: the server's address, `sc://host:port`.
        app_name: the client's name in the server's UI.
        conf: the pipeline's settings.

    Raises:
        InputError: the server requires a token, has another version of Spark or Python, has no
            Delta, or does not accept a setting.
        RetryableError: it does not answer.
    """
    settings = {**EVERYWHERE, **(conf or {})}
    try:
        spark = connected(remote, {"spark.app.name": app_name}, extra="connect")
        limit_retries(spark, _RETRIES)
        version = spark.version
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - gRPC has its own errors, and PySpark others
        raise _not_reached(remote, error) from None
    session = ConnectSession(spark, version)
    register(session)
    try:
        _require_same_spark(version)
        _set(spark, settings)
        _require_delta(spark)
        _require_same_python(spark)
        _send_library(spark)
    except BaseException:
        session.stop()
        raise
    return session


def _not_reached(remote: str, error: Exception) -> InputError | RetryableError:
    text = str(error)
    if any(words in text for words in _TOKEN_IS_WRONG):
        return InputError(
            f"--remote {remote}",
            "the server wants a token, or another one",
            "put it into the environment as SPARK_CONNECT_AUTHENTICATE_TOKEN",
        )
    return RetryableError(
        f"--remote {remote}",
        f"does not answer ({telling_line(text) or type(error).__name__})",
        "check the address and that the server runs; it needs a certificate where the address "
        "has ;use_ssl=true, or where a token is sent to another host than localhost",
    )


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])


def _require_same_spark(version: str) -> None:
    if _minor(version) != _minor(pyspark.__version__):
        raise InputError(
            _PLACE,
            f"the server is Spark {version}, and this client is for {pyspark.__version__}",
            "use a server and a client of the same minor version",
        )


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Set the session's settings.

    Raises:
        InputError: a setting can only be set when the server starts.
    """
    fixed = [name for name in settings if not spark.conf.isModifiable(name)]
    if fixed:
        raise InputError(
            f"{_PLACE}: spark",
            f"a session cannot set {', '.join(fixed)}",
            "set it where the server is started, and leave it out of the pipeline's file",
        )
    for name, value in settings.items():
        spark.conf.set(name, value)


def _require_delta(spark: SparkSession) -> None:
    """Check that the server has Delta, by reading a table that does not exist.

    Raises:
        InputError: the server has no Delta, or was started without Delta's settings.
    """
    lacks = spark.conf.get(_CATALOG, _NO_CATALOG) == _NO_CATALOG
    try:
        _ = spark.read.format("delta").load("/strandline/no/such/table").schema
    except Exception as error:  # noqa: BLE001 - the class differs with what the server lacks
        text = str(error)
        lacks |= "DATA_SOURCE_NOT_FOUND" in text or "Failed to find the data source" in text
    if lacks:
        raise InputError(
            _PLACE,
            "the server has no Delta Lake",
            "start it with the packages of delta-spark and its two settings (docs/which-engine.md)",
        )


def _require_same_python(spark: SparkSession) -> None:
    """Check the version of the workers' Python.

    Raises:
        InputError: its minor version is another one, or it cannot be started.
    """
    of_client = f"{sys.version_info.major}.{sys.version_info.minor}"
    from pyspark.sql import functions as F  # noqa: PLC0415 - by now it is the client's

    @F.udf("string")
    def python(_: int) -> str:
        import sys as worker  # noqa: PLC0415

        return f"{worker.version_info.major}.{worker.version_info.minor}"

    try:
        of_workers = spark.range(1).select(python("id")).collect()[0][0]
    except Exception as error:  # noqa: BLE001 - a worker's end comes as the server puts it
        of_workers = telling_line(str(error))
    if of_workers != of_client:
        raise InputError(
            _PLACE,
            f"this client has Python {of_client}, and the server's workers have not ({of_workers})",
            "give both the same minor version (PYSPARK_PYTHON where the server is started)",
        )


def _send_library(spark: SparkSession) -> None:
    """Send this library to the server's workers."""
    package = Path(strandline.__file__).parent
    with tempfile.TemporaryDirectory(prefix="strandline-") as folder:
        archive = Path(folder) / "strandline.zip"
        with ZipFile(archive, "w") as into:
            for source in sorted(package.rglob("*.py")):
                into.write(source, source.relative_to(package.parent))
        spark.addArtifacts(str(archive), pyfile=True)
