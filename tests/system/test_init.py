"""What `init` proposes runs at once: the flights by other names, and columns with odd names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

sys.path.insert(0, str(Path(__file__).parents[2] / "jobs"))
from land_flights import read_flights, source_file, with_instants

pytestmark = pytest.mark.system
NAMES = {"departed_at": "left ground", "landed_at": "seen.at", "origin": "a`b", "carrier": "größe"}


def strandline(folder, *arguments):
    environment = os.environ | {
        "STRANDLINE_LAKE": "lake",
        "STRANDLINE_PIPELINES": "pipelines",
        "STRANDLINE_ENGINE": "sail",
        "STRANDLINE_TRUST_THIS_MACHINE": "1",
    }
    command = [Path(sys.executable).with_name("strandline"), *arguments, "--json"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_flights_by_other_names_are_understood_and_run(tmp_path):
    flights = with_instants(read_flights(source_file()))
    flights = flights.filter(pa.compute.less(flights["month"], 2))
    flights = flights.rename_columns([NAMES.get(name, name) for name in flights.column_names])
    place = tmp_path / "lake" / "landing" / "some flights"
    # a table that another program has written may have such names
    write_deltalake(str(place), flights, partition_by=["arrival_date"])

    found = strandline(tmp_path, "init", "--from", "landing/some flights", "--name", "f")
    values = {one["key"]: one["value"] for one in found["guesses"]}
    assert found["engine"] == "sail"
    assert values["source.event_time"] == "left ground"
    assert values["source.arrival_time"] == "seen.at"
    assert values["source.arrival_date"] == "arrival_date"
    assert values["window"] == "tumbling: 1h"
    lost = [one["share_lost"] for one in found["choices"]]
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] == 0 < lost[0] < 0.5
    assert "of all 26,398 records, by the advisor" in str(found["guesses"])

    assert strandline(tmp_path, "validate", "f")[0]["valid"]
    run = strandline(tmp_path, "advance", "f", "--to", "2013-01-08")
    assert run["status"] == "published"
    assert run["diff"]["windows"]["insert"] > 1_000
