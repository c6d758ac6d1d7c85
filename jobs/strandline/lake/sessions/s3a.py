"""How Apache Spark reads an object store: by Hadoop's S3A, which does not come with it."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.errors import InputError
from strandline.lake.local import spark_folder

PACKAGE = "org.apache.hadoop:hadoop-aws"
_HADOOP = "spark.hadoop.fs.s3a"
_BY_HAND = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def s3a_settings(environment: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str]:
    """Settings of S3A that say what the environment says to delta-rs.

    The credentials are none of them: Spark takes them from its environment.

    Args:
        environment: of the process.
        conf: the pipeline's own settings.

    Raises:
        InputError: the package is not among Spark's jars. Under spark-submit nobody asks: its
            option `--packages` may have added it.
    """
    if "PYSPARK_GATEWAY_PORT" not in environment and not ({*_BY_HAND} & {*conf} or _is_there()):
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


def _is_there() -> bool:
    return bool(_jars("hadoop-aws"))


def _version() -> str:
    """The version of Spark's own Hadoop, which S3A has to be of."""
    (client,) = _jars("hadoop-client-api")[:1] or ["hadoop-client-api-VERSION"]
    return client.rpartition("-")[2]


def _jars(name: str) -> list[str]:
    """Spark's jars of a name, without their endings."""
    folder = spark_folder()
    return [] if folder is None else [jar.stem for jar in (folder / "jars").glob(f"*{name}-*.jar")]
