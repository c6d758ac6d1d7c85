"""The start of Spark's JVM, described without loading Spark, for submitting processes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_QUIET = Path(__file__).with_name("log4j2.properties")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
CLASS_PATH = "spark.driver.extraClassPath"
WORKERS_PYTHON, DRIVERS_PYTHON = "spark.pyspark.python", "spark.pyspark.driver.python"
"""The settings of the executors' Python, and of the Python of a driver under spark-submit."""
MEMORY = "spark.driver.memory"
"""The setting of the memory of the driver, which on one machine is all of Spark, or of Sail."""
_ANYWHERE = {
    MEMORY: "4g",
    # without checksum files beside every file: half as many files, and they are slow to make
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    JAVA_OPTIONS: f"-Dlog4j2.configurationFile={_QUIET.as_uri()}",
}
_SETTINGS = {
    **_ANYWHERE,
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
_LIGHT_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVM options for a short run: only the quick compiler, and a single-threaded collector."""

SMALL_PAGES = {"spark.buffer.pageSize": "1m"}
"""The setting of the memory page of each sort and hash of a task; its default is up to 64 MB."""


def spark_folder() -> Path | None:
    """The folder of the installed pyspark; None if it is not installed."""
    found = find_spec("pyspark")
    return Path(found.origin).parent if found and found.origin else None


def delta_jars() -> list[Path]:
    """Delta's jars among the jars of the installed pyspark."""
    spark = spark_folder()
    groups = ("io.delta", "io.unitycatalog")
    return [] if spark is None else [j for g in groups for j in (spark / "jars").glob(f"{g}_*.jar")]


def class_archive(spark: Path) -> Path:
    """The class-data archive that the set-up makes, below pyspark's folder."""
    return spark / "strandline-classes.jsa"


def class_path(spark: Path) -> str:
    """Spark's jars as the start of the class path, which a class-data archive requires."""
    return str(spark / "jars" / "*")


def cluster_settings() -> dict[str, str]:
    """Spark's settings for the start of a driver whose executors are on other machines."""
    return dict(_ANYWHERE)


def local_settings(*, short: bool = False) -> dict[str, str]:
    """Spark's settings for the start of a JVM that is all of Spark on one machine.

    Under spark-submit they must be given to the submitting command. If the set-up has made a
    class-data archive, the JVM maps it instead of loading classes, which takes a third of a short
    run; an archive that does not fit the JVM or the jars is ignored.

    `short` means that the run is too short for a JVM to warm up (`small_runs.is_small`).
    """
    settings = dict(_SETTINGS)
    spark = spark_folder()
    if spark is not None and class_archive(spark).is_file():
        settings[CLASS_PATH] = class_path(spark)
        settings[JAVA_OPTIONS] += f" -XX:SharedArchiveFile={class_archive(spark)} -Xlog:cds=off"
    if short:
        settings[JAVA_OPTIONS] += f" {_LIGHT_OPTIONS}"
        settings |= SMALL_PAGES
    return settings
