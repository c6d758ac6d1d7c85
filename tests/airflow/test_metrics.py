"""A published run as metrics: sent to a StatsD server as Airflow is configured to."""

from __future__ import annotations

import socket
from datetime import UTC, datetime

import pytest

pytestmark = pytest.mark.airflow

NOW = datetime(2013, 1, 3, 1, tzinfo=UTC)
ANSWER = {
    "status": "published",
    "frontier": "2013-01-03T00:00:00Z",
    "books": [
        {
            "name": "arrival day 2013-01-01",
            "total": 500,
            "parts": {"malformed": 5, "well_formed": 495},
        },
        {
            "name": "arrival day 2013-01-02",
            "total": 500,
            "parts": {"malformed": 15, "well_formed": 485},
        },
        {"name": "range", "total": 980, "parts": {"accepted": 931, "late": 49, "no_window": 0}},
    ],
    "seconds": {"observe": 0.5, "publish": 0.25},
}


@pytest.fixture
def server(monkeypatch):
    """A StatsD server of this machine; gives all that it has got, as `name:value|kind`."""
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
    from airflow.sdk._shared.observability.metrics.statsd_logger import SafeStatsdLogger
    from airflow.sdk._shared.observability.metrics.validators import PatternAllowListValidator
    from airflow.sdk.observability import stats
    from statsd import StatsClient

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0.2)
        client = StatsClient(host="127.0.0.1", port=udp.getsockname()[1], prefix="airflow")
        stats.initialize(
            factory=lambda: SafeStatsdLogger(client, PatternAllowListValidator()),
            export_legacy_names=False,
        )

        def got():
            said = set()
            try:
                while True:
                    said.add(udp.recv(4_096).decode())
            except TimeoutError:
                return said

        yield got
    stats.initialize(factory=NoStatsLogger, export_legacy_names=False)


def test_a_published_run_is_sent_as_gauges_and_timings(server):
    from strandline_airflow.announcing import count_run

    count_run("flights", ANSWER, NOW)
    assert server() == {
        "airflow.strandline.flights.freshness_seconds:3600.0|g",
        "airflow.strandline.flights.rows:1000|g",
        "airflow.strandline.flights.malformed_share:0.02|g",
        "airflow.strandline.flights.late_share:0.05|g",
        "airflow.strandline.flights.seconds.observe:500.000000|ms",
        "airflow.strandline.flights.seconds.publish:250.000000|ms",
    }


@pytest.mark.parametrize("answer", [None, {}, ANSWER | {"status": "previewed"}])
def test_what_has_not_published_sends_nothing(server, answer):
    from strandline_airflow.announcing import count_run

    count_run("flights", answer, NOW)
    assert server() == set()


def test_a_run_over_nothing_has_no_share():
    from strandline_airflow.announcing import gauges_of

    assert gauges_of({"status": "published", "books": []}, NOW) == {"rows": 0}
