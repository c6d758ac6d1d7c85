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
        InputError: the package is not among Spark's jars. Under spark-submit nobody asks: it may
            have brought it.
    """
    if "PYSPARK_GATEWAY_PORT" not in environment and not ({*_BY_HAND} & {*conf} or _is_there()):
        raise InputError(
            "engine spark",
            f"reads no object store without {PACKAGE}, which is not among its jars",
            f"add spark.jars.packages: {PACKAGE}:VERSION, of Spark's Hadoop, and Delta's package "
            "below spark: in the file, or by spark-submit --packages; or give --engine sail, which "
            "needs neither",
        )
    found = {
        f"{_HADOOP}.endpoint.region": environment.get("AWS_REGION"),
        f"{_HADOOP}.endpoint": environment.get("AWS_ENDPOINT_URL"),
        # each bucket below the endpoint's address, and not a host of its own
        f"{_HADOOP}.path.style.access": "true" if environment.get("AWS_ENDPOINT_URL") else None,
    }
    return {name: value for name, value in found.items() if value}


def _is_there() -> bool:
    folder = spark_folder()
    return folder is not None and any((folder / "jars").glob("*hadoop-aws*.jar"))
