"""What a run is asked for, from params, partition date and data interval."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from strandline.errors import InputError
from strandline_airflow.params import horizon_of, pipeline_of, range_options

END = datetime(2013, 1, 15, 6, tzinfo=UTC)
PARTITION = datetime(2013, 1, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("params", "partition_date", "expected"),
    [
        ({"to": "2013-02-01"}, PARTITION, "2013-02-01T00:00:00Z"),
        ({"to": None}, PARTITION, "2013-01-21T00:00:00Z"),
        ({"to": None}, None, "2013-01-15T06:00:00Z"),
        ({}, None, "2013-01-15T06:00:00Z"),
    ],
)
def test_the_param_goes_before_the_partition_and_the_partition_before_the_interval(
    params, partition_date, expected
):
    assert horizon_of(params, partition_date=partition_date, data_interval_end=END) == expected


def test_a_partition_ends_with_its_utc_day():
    new_york = timezone(timedelta(hours=-5))
    partition = datetime(2013, 1, 20, 22, tzinfo=new_york)  # the 21st in UTC
    horizon = horizon_of({}, partition_date=partition, data_interval_end=None)
    assert horizon == "2013-01-22T00:00:00Z"


def test_a_run_that_an_asset_has_triggered_goes_up_to_when_it_was_due():
    horizon = horizon_of({}, partition_date=None, data_interval_end=None, run_after=END)
    assert horizon == "2013-01-15T06:00:00Z"


def test_a_run_without_any_date_says_how_to_give_one():
    with pytest.raises(InputError, match="trigger it with `to`"):
        horizon_of({}, partition_date=None, data_interval_end=None)


def test_a_range_is_read_in_utc_and_to_the_millisecond():
    options = range_options(
        {"start": "2013-02-10", "end": "2013-02-13T01:00:00.0019+01:00", "as_of": "2013-03-01"}
    )
    assert options == [
        "--start=2013-02-10T00:00:00Z",
        "--end=2013-02-13T00:00:00.001Z",
        "--as-of=2013-03-01T00:00:00Z",
    ]


@pytest.mark.parametrize("end", ["2013-02-10", "2013-02-09", "2013-02-10T01:00:00+01:00"])
def test_a_range_has_to_end_after_its_start(end):
    with pytest.raises(InputError, match=r"param end: .* is not after start"):
        range_options({"start": "2013-02-10", "end": end})


@pytest.mark.parametrize("value", ["yesterday", "", None, 20130210, ["2013-02-10"], "{{ ds }}"])
def test_what_is_no_instant_is_refused_by_the_name_of_its_param(value):
    with pytest.raises(InputError, match=r"param start: .* is not an instant"):
        range_options({"start": value, "end": "2013-02-13"})


@pytest.mark.parametrize("name", ["nope", "../flights", "", None, ["flights"], {"a": 1}, "Flights"])
def test_a_pipeline_is_one_of_those_that_there_are(name):
    with pytest.raises(InputError, match="there are: flights, tides"):
        pipeline_of({"pipeline": name}, {"flights": 1, "tides": 2})
