"""The settings of Hadoop's S3A, by which Apache Spark reads an object store."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.errors import InputError
from strandline.lake.local import spark_folder

PACKAGE = "org.apache.hadoop:hadoop-aws"
_HADOOP = "spark.hadoop.fs.s3a"
_BY_HAND = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def s3a_settings(environment: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of S3A that correspond to delta-rs' environment variables.

    Credentials are not among them: S3A reads them from the environment.

    Args:
        environment: the environment variables of the process.
        conf: the pipeline's settings.

    Raises:
        InputError: S3A is not among Spark's jars. This is not checked under spark-submit, whose
            option `--packages` may add it.
    """
    if "PYSPARK_GATEWAY_PORT" not in environment and not (
        {*_BY_HAND} & {*conf} or _jars("hadoop-aws")
    ):
        raise InputError(
            "engine spark",
            f"reads no object store without {PACKAGE}, which is not among its jars",
            f"add spark.jars.packages: {PACKAGE}:{_version()} below spark: in the file; or give "
            "--engine sail, which needs none",
        )
    found = {
        f"{_HADOOP}.endpoint.region": environment.get("AWS_REGION"),
        f"{_HADOOP}.endpoint": environment.get("AWS_ENDPOINT_URL"),
        # in memory: its folder on disk wants a file system with checksums, which is left out here
        f"{_HADOOP}.fast.upload.buffer": "bytebuffer",
        # each bucket below the endpoint's address, and not a host of its own
        f"{_HADOOP}.path.style.access": "true" if environment.get("AWS_ENDPOINT_URL") else None,
    }
    return {name: value for name, value in found.items() if value}


def _version() -> str:
    """The version of Spark's Hadoop, which S3A must have."""
    (client,) = _jars("hadoop-client-api")[:1] or ["hadoop-client-api-VERSION"]
    return client.rpartition("-")[2]


def _jars(name: str) -> list[str]:
    """The names of Spark's jars with a prefix, without suffix."""
    folder = spark_folder()
    return [] if folder is None else [jar.stem for jar in (folder / "jars").glob(f"*{name}-*.jar")]
