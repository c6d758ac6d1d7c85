"""Keeps the classes that a run loads in an archive beside Spark's jars: the next JVM only maps it.

A small run is done in a JVM that writes the archive as it ends (Java's class-data sharing).
The JVM itself holds the archive against its own version and against the jars when it is used.

    python scripts/archive_classes.py
"""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from subprocess import Popen
from tempfile import TemporaryDirectory

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from strandline.lake.local import CLASS_PATH, JAVA_OPTIONS, class_archive, class_path, spark_folder
from strandline.lake.sessions.classic import start_classic
from strandline.lake.store.lake import Lake
from strandline.pipeline.request.request import Request
from strandline.pipeline.run import run
from strandline.spec import parse_spec

PIPELINE = {
    "pipeline": "rehearsal",
    "source": {
        "table": "landing/rehearsal",
        "arrival_time": "arrived_at",
        "event_time": "happened_at",
        "arrival_date": "arrived_on",
        "channel": "channel",
        "channels": ["a", "b"],
        "key": ["channel"],
        "start": "2024-03-01T00:00:00Z",
    },
    "watermark": {"strategy": "bounded_out_of_orderness", "bound": "10m"},
    "window": {"tumbling": "1h"},
    "allowed_lateness": "30m",
    "aggregates": {"rows": "count(*)", "last": "max(happened_at)"},
}
DAYS = (datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 3, 2, tzinfo=UTC))
DELAYS = (timedelta(minutes=1), timedelta(minutes=20), timedelta(hours=3))
SCHEMA = pa.schema(
    [
        ("arrived_at", pa.timestamp("us", tz="UTC")),
        ("happened_at", pa.timestamp("us", tz="UTC")),
        ("arrived_on", pa.date32()),
        ("channel", pa.string()),
    ]
)


def records_of(midnight: datetime) -> pa.Table:
    """Some records of a day: on time, late but accepted, late, malformed."""
    rows = []
    for hour in range(4, 20):
        arrived_at = midnight + timedelta(hours=hour)
        for number, delay in enumerate((*DELAYS, None)):
            rows.append(
                {
                    "arrived_at": arrived_at,
                    "happened_at": None if delay is None else arrived_at - delay,
                    "arrived_on": date(midnight.year, midnight.month, midnight.day),
                    "channel": "ab"[number % 2],
                }
            )
    return pa.Table.from_pylist(rows, SCHEMA)


def end(spark: SparkSession) -> None:
    """Ends the session and its JVM, and waits for what the JVM does as it ends."""
    jvm: Popen[bytes] = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    spark.stop()
    jvm.communicate()  # it ends with its input


def main() -> int:
    """Writes the archive; what stops it is an exception, and leaves an older one as it was."""
    spark_home = spark_folder()
    if spark_home is None:
        sys.exit("pyspark is not installed")
    archive, spec = class_archive(spark_home), parse_spec(PIPELINE, origin="rehearsal")
    written = archive.with_suffix(".new")
    written.unlink(missing_ok=True)
    settings = {
        CLASS_PATH: class_path(spark_home),
        JAVA_OPTIONS: f"-XX:ArchiveClassesAtExit={written} -XX:TieredStopAtLevel=1",
    }
    with TemporaryDirectory() as folder:
        spark = start_classic("strandline set-up", settings, master="local[2]").spark
        landed = pa.concat_tables(records_of(midnight) for midnight in DAYS)
        write_deltalake(f"{folder}/landing/rehearsal", landed, partition_by=["arrived_on"])
        to_ms = int((DAYS[-1] + timedelta(days=1)).timestamp()) * 1000
        run(spec, Lake.at(folder), Request("advance", to_ms=to_ms), spark)
        end(spark)
    written.replace(archive)
    return 0


if __name__ == "__main__":
    sys.exit(main())
