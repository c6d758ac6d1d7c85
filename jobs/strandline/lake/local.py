"""How Spark is set up on one machine; known without loading Spark, for those who only submit."""

from __future__ import annotations

from pathlib import Path

_QUIET = Path(__file__).with_name("log4j2.properties")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOCAL_SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
    # without checksum files beside every file: half as many files, and they are slow to make
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    JAVA_OPTIONS: f"-Dlog4j2.configurationFile={_QUIET.as_uri()}",
}
"""For a JVM that starts with them; under spark-submit it has to be told when it is started."""
