"""What an engine cannot do of a pipeline is refused by name, before it is started."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lakes import a_record, a_spec, land

from strandline.errors import InputError
from strandline.lake.landing.log import LandingLog
from strandline.lake.sessions.choice import EngineChoice
from strandline.lake.sessions.embedded import bytes_of
from strandline.lake.store.lake import Lake
from strandline.pipeline.request.unsupported import require_supported, stores_of


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("aggregates__total", "count_if(isnan(amount))", "isnan(): Sail gives null"),
        ("source__where", "to_json(struct(amount)) > 'a'", "to_json(): Sail writes numbers"),
        ("source__valid", "amount >>> 1 = 0", "its result on Sail is not known"),
        (
            "source__event_time",
            "my_time(happened_at)",
            "the result of my_time() on Sail is not known",
        ),
    ],
)
def test_a_function_that_sail_computes_otherwise_is_refused_there_alone(
    tmp_path, path, text, problem
):
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    lake = Lake(str(tmp_path))
    spec = a_spec(**{path: text}).model_copy(update={"spark": {}})
    log = LandingLog.open(lake.resolve(spec.source.table), "source.table", spec.source.table)
    require_supported(EngineChoice("spark"), spec, log)
    with pytest.raises(InputError, match="--engine spark") as caught:
        require_supported(EngineChoice("sail"), spec, log)
    assert caught.value.place == f"meter: {path.replace('__', '.')}"
    assert caught.value.problem.startswith(f"{text!r}: {problem}")


def test_a_lake_or_a_landing_table_on_other_machines_needs_the_network(tmp_path):
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    here, elsewhere = Lake.at(str(tmp_path)), Lake.at("s3://bucket/lake")
    log = LandingLog.of(here, a_spec())
    assert stores_of(here, None) == stores_of(here, log) == set()
    assert stores_of(elsewhere, log) == {"s3"}
    assert stores_of(here, replace(log, uri="gs://bucket/landing/meter")) == {"gs"}


def test_of_sparks_settings_sail_knows_the_memory_alone(tmp_path):
    land(tmp_path, [a_record("1 10:00", "1 09:00")])
    lake, memory = Lake(str(tmp_path)), {"spark.driver.memory": "6g"}
    spec = a_spec().model_copy(update={"spark": memory})
    require_supported(EngineChoice("sail"), spec, LandingLog.of(lake, spec))
    other = spec.model_copy(update={"spark": memory | {"spark.sql.shuffle.partitions": "8"}})
    with pytest.raises(InputError, match=r"spark\.spark\.sql\.shuffle\.partitions"):
        require_supported(EngineChoice("sail"), other, LandingLog.of(lake, spec))


@pytest.mark.parametrize("size", ["4", "4 g", "g", "-1g", "1.5g", "4g; x", ""])
def test_a_size_of_memory_is_written_as_spark_takes_it(size):
    assert [bytes_of(text) for text in ("4g", "512M", " 2gb")] == [4 << 30, 512 << 20, 2 << 30]
    with pytest.raises(InputError, match="write it as 4g or 512m"):
        bytes_of(size)
