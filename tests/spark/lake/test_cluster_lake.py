"""Driver and executors see the same lake, or the run does not begin."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from strandline.errors import InputError
from strandline.lake.sessions.protocol import ApacheSession
from strandline.lake.sessions.shared import require_shared
from strandline.lake.store.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.only_on_spark(reason="executors in a JVM")]


@dataclass(frozen=True)
class Far(ApacheSession):
    """A session whose executors are asked, though they are in the driver's JVM."""

    spark: SparkSession
    on_one_machine: bool = False
    parallelism: int = 2


def test_a_folder_that_each_machine_has_for_itself_is_named(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = Lake.at(f"/proc/self/cwd/lake-of-{tmp_path.name}")  # the JVM has another one
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    with pytest.raises(InputError, match=r"of 4 files .* 4 are not here; mount the same storage"):
        require_shared(Far(spark), mine, "probe")
    shutil.rmtree(Path(f"/proc/{jvm}/cwd/lake-of-{tmp_path.name}"))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_executors_cannot_write_is_named_with_what_they_say(spark, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"an executor cannot write into it: .*; mount the same"):
        require_shared(Far(spark), Lake.at(str(tmp_path / "file" / "lake")), "probe")


def test_a_shared_folder_is_left_as_it_was(spark, tmp_path):
    require_shared(Far(spark), Lake.at(str(tmp_path)), "probe")
    assert not list(tmp_path.iterdir())
