"""How Spark's JVM is started; known without loading Spark, for those who only submit."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_QUIET = Path(__file__).with_name("log4j2.properties")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
CLASS_PATH = "spark.driver.extraClassPath"
WORKERS_PYTHON, DRIVERS_PYTHON = "spark.pyspark.python", "spark.pyspark.driver.python"
"""The Python of executors and, where nothing else is said, of a driver that spark-submit starts."""
MEMORY = "spark.driver.memory"
"""Of the driver's process, which is all of Spark on one machine; of Sail's, where that computes."""
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
"""For a run of a minute: a JVM that compiles quickly, not well, and collects with one thread."""

SMALL_PAGES = {"spark.buffer.pageSize": "1m"}
"""What each sort and hash of a task begins with: by default 64 MB, however few its rows are."""


def spark_folder() -> Path | None:
    """Where pyspark is installed; None: it is not."""
    found = find_spec("pyspark")
    return Path(found.origin).parent if found and found.origin else None


def delta_jars() -> list[Path]:
    """Delta's jars where the set-up has put them: beside those of Spark."""
    spark = spark_folder()
    groups = ("io.delta", "io.unitycatalog")
    return [] if spark is None else [j for g in groups for j in (spark / "jars").glob(f"{g}_*.jar")]


def class_archive(spark: Path) -> Path:
    """Where the set-up puts the classes of a run for the JVM to map, below pyspark's folder."""
    return spark / "strandline-classes.jsa"


def class_path(spark: Path) -> str:
    """Spark's own jars, as the class path has to begin for an archive of classes to count."""
    return str(spark / "jars" / "*")


def cluster_settings() -> dict[str, str]:
    """Spark's settings for a driver whose executors live elsewhere, for a JVM that starts so."""
    return dict(_ANYWHERE)


def local_settings(*, short: bool = False) -> dict[str, str]:
    """Spark's settings for one machine, for a JVM that starts with them.

    Under spark-submit it has to be given them when it is started. Where the set-up has left an
    archive of classes, the JVM maps it and does not read and check each class, which takes a third
    of a short run; one that does not fit the JVM or the jars is passed over in silence.

    `short`: the run is over before a JVM would have warmed up (`small_runs.is_small`).
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
