"""Landing columns of another type: quarantine holds source rows whatever becomes of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from lakes import SCHEMA, Line, a_record, a_spec

from strandline.errors import InputError
from strandline.pipeline.manage.revert import revert_run
from strandline.pipeline.views.status import status_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

DAYS = {
    day: [
        *(a_record(f"{day} 1{hour}:00", f"{day} 1{hour}:00") for hour in range(6)),
        a_record(f"{day} 15:10", f"{day} 09:05", amount=day),
        a_record(f"{day} 15:20", f"{day} 15:20", amount=10 * day, happened_at=None),
    ]
    for day in (1, 2, 3, 4)
}
UNUSED = a_spec(source__channels=["a"], aggregates={"seen": "count(*)"})


def land_as(lake: Path, days: int, name: str, kind: pa.DataType | None, value: Any = None) -> None:
    """The first days as whoever overwrites the landing with its schema lands them.

    `kind`: the type of a column; None: it is not there any more. A new column has the values of
    `amount`.
    """
    rows = pa.Table.from_pylist([row for day in range(1, days + 1) for row in DAYS[day]], SCHEMA)
    place = rows.schema.get_field_index(name)
    if kind is None:
        rows = rows.drop_columns([name])
    else:
        column = rows["amount" if place < 0 else name].to_pylist()
        values = [one if value is None or one is None else value(one) for one in column]
        put = rows.append_column if place < 0 else partial(rows.set_column, place)
        rows = put(name, pa.array(values, kind))
    write_deltalake(
        str(lake / "landing/meter"),
        rows,
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=["arrived_on"],
    )


def quarantined(line: Line, *names: str) -> list[tuple[Any, ...]]:
    rows = line.rows("quarantine")
    return sorted((row["reason"], *(row.get(name) for name in names)) for row in rows)


def same_windows(line: Line) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "run_id"} for row in line.rows("windows")]


@pytest.fixture(scope="module")
def published(spark, tmp_path_factory):
    line = Line(spark, tmp_path_factory.mktemp("published"), UNUSED)
    land_as(line.folder, 2, "amount", pa.int64())
    line.advance("3")
    return line


@pytest.fixture
def two_days(published, tmp_path):
    return published.copy(tmp_path / "two_days")


def test_a_bigint_that_becomes_a_double_is_kept_in_a_second_column(two_days):
    line, lake = two_days, two_days.folder
    assert quarantined(line, "amount") == [
        *(("late", day) for day in (1, 2)),
        *(("null_event_time", day) for day in (10, 20)),
    ]
    land_as(lake, 3, "amount", pa.float64(), lambda n: n + 0.5)
    shown = line.advance("4", dry_run=True)
    outcome = line.advance("4")
    note = (
        "quarantine: amount is double in the landing table, and was bigint: new rows have it "
        "in amount__double, earlier rows in amount"
    )
    assert note in outcome.notes
    assert note in shown.notes
    assert shown.diff == outcome.diff
    every = [
        *(("late", None, day + 0.5) for day in (1, 2, 3)),
        *(("null_event_time", None, day + 0.5) for day in (10, 20, 30)),
    ]
    assert quarantined(line, "amount", "amount__double") == every
    # a rerun by hand, and a day more
    assert not line.backfill("1", "4", as_of="4").changed
    land_as(lake, 4, "amount", pa.float64(), lambda n: n + 0.5)
    line.advance("5")
    assert len(quarantined(line)) == 8
    assert {row["amount"] for row in line.rows("quarantine")} == {None}
    # taken back: what stood before
    last = [entry for entry in line.ledger if entry.step == "published"][-1]
    revert_run(line.spec, line.lake, last.run_id, line.spark, reason="a mistake")
    assert len(quarantined(line, "amount__double")) == 7  # malformed rows are no run's
    # and back again: each row is in the column of its type, what came with the run too
    land_as(lake, 4, "amount", pa.int64())
    back = line.advance("5")
    assert not any("second" in note or "amount__double" in note for note in back.notes)
    assert {row["amount__double"] for row in line.rows("quarantine")} == {None}
    assert len(quarantined(line)) == 8
    # a landing column that is called like the second one does not share it
    land_as(lake, 4, "amount__double", pa.float64(), lambda n: n + 0.25)
    assert (
        "quarantine: amount__double of the landing table is also the name of the second column of "
        "amount: its values are in amount__double__double"
    ) in line.advance("5").notes
    held = quarantined(line, "amount", "amount__double", "amount__double__double")
    assert {(double, own - amount) for _, amount, double, own in held} == {(None, 0.25)}


def test_a_retyped_input_of_an_aggregate_stops_the_run_and_both_ways_out_work(two_days, tmp_path):
    line = two_days.of(a_spec(source__channels=["a"], aggregates={"total": "sum(amount)"}))
    line.backfill("1", "3", as_of="3")
    land_as(line.folder, 3, "amount", pa.float64(), lambda n: n + 0.5)
    with pytest.raises(InputError) as refused:
        line.advance("4")
    assert "column total is double, but published as bigint" in refused.value.problem
    cause = "(column amount of the landing table is double now, and was bigint in its version 0"
    assert cause in refused.value.problem
    assert "cast aggregates.total to bigint, or give it another name" in refused.value.way_out
    other = line.copy(tmp_path / "other")
    cast = {"total": "cast(sum(amount) as bigint)"}
    line.of(a_spec(source__channels=["a"], aggregates=cast)).advance("4")
    assert {type(row["total"]) for row in line.rows("windows")} == {int}
    other.of(a_spec(source__channels=["a"], aggregates={"amounts": "sum(amount)"})).advance("4")
    assert {row["amounts"] for row in other.rows("windows")} >= {1.5}


@pytest.mark.parametrize(
    ("name", "kind", "value", "way_out", "source"),
    [
        (
            "happened_at",
            pa.int64(),
            lambda at: int(at.timestamp() * 1000),
            "timestamp_millis(happened_at)",
            {"event_time": "timestamp_millis(happened_at)"},
        ),
        ("source", None, None, "source.channel", {"channel": "device", "channels": ["d1"]}),
    ],
)
def test_a_retyped_column_that_the_pipeline_uses_stops_it_and_the_way_out_works(
    two_days, name, kind, value, way_out, source
):
    line = two_days
    before = line.rows("windows")
    land_as(line.folder, 2, name, kind, value)
    with pytest.raises(InputError) as refused:
        line.advance("3")
    assert way_out in str(refused.value)
    state = status_of(line.spec, line.lake)["state"]  # the refused run has no step in the ledger
    assert state.startswith("CRITICAL: every run is refused: ")
    assert way_out in state
    changed = {f"source__{key}": of for key, of in source.items()}
    mended = a_spec(**({"source__channels": ["a"], "aggregates": {"seen": "count(*)"}} | changed))
    line.of(mended).advance("3")
    assert status_of(mended, line.lake)["refused"] == []
    assert [row["seen"] for row in line.rows("windows")] == [row["seen"] for row in before]
    assert len(line.rows("quarantine")) == 4


def test_a_key_of_another_type_is_another_pipeline_and_can_replace_what_is_published(two_days):
    line = two_days
    land_as(line.folder, 3, "device", pa.int64(), lambda name: int(name[1:]))
    with pytest.raises(InputError) as refused:
        line.advance("4")
    assert "strandline advance meter --to INSTANT --recreate --reason TEXT" in str(refused.value)
    line.advance("4", recreate=True, reason="devices have numbers")
    assert {row["device"] for row in line.rows("windows")} == {1}
    assert {row["device__bigint"] for row in line.rows("quarantine")} == {1}
    assert status_of(line.spec, line.lake)["refused"] == []
