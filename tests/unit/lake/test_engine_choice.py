"""Which engine a command runs on: options first, then the environment, then the pipeline's file."""

from __future__ import annotations

import pytest

from strandline.errors import InputError
from strandline.lake.sessions.choice import ENGINE, REMOTE, TRUST, choose

SERVER = "sc://spark.example:15002"


@pytest.mark.parametrize(
    ("given", "environment", "of_pipeline", "chosen"),
    [
        ({}, {}, None, "spark"),
        ({}, {}, "sail", "sail"),
        ({}, {ENGINE: "spark"}, "sail", "spark"),
        ({"engine": "sail"}, {ENGINE: "spark"}, None, "sail"),
        ({"engine": "spark"}, {ENGINE: "sail", REMOTE: SERVER}, "connect", "spark"),
        ({"remote": SERVER}, {ENGINE: "sail"}, "spark", "connect"),
        ({"engine": "connect"}, {REMOTE: SERVER}, None, "connect"),
        ({"master": "local[2]"}, {}, None, "spark"),
        ({}, {ENGINE: ""}, None, "spark"),
    ],
)
def test_an_option_wins_over_the_environment_and_that_over_the_file(
    given, environment, of_pipeline, chosen
):
    assert choose(environment, **given, of_pipeline=of_pipeline).name == chosen


@pytest.mark.parametrize(
    ("given", "environment", "said"),
    [
        ({"engine": "flink"}, {}, "--engine: 'flink' is no engine; give one of spark, connect"),
        ({}, {ENGINE: "duck"}, f"{ENGINE}: 'duck' is no engine"),
        ({"engine": "sail", "master": "local"}, {}, "--master: is for the engine spark, and --eng"),
        ({"master": "local"}, {ENGINE: "sail"}, f"--master: is for the engine spark, and {ENGINE}"),
        ({"engine": "sail", "remote": SERVER}, {}, "--remote: is for the engine connect"),
        ({"remote": SERVER, "master": "local"}, {}, "--master: is for the engine spark, and --rem"),
        ({"engine": "connect"}, {}, "--remote: the engine connect needs a server; give sc://host"),
        ({"remote": "spark://host:7077"}, {}, "--remote: 'spark://host:7077' is not an address"),
        ({"remote": "sc://"}, {}, "--remote: 'sc://' is not an address of Spark Connect"),
        ({"remote": "sc://host:port"}, {}, "--remote: 'sc://host:port' is not an address"),
        (
            {"engine": "connect"},
            {REMOTE: "host:15002"},
            f"{REMOTE}: 'host:15002' is not an address",
        ),
    ],
)
def test_what_contradicts_itself_or_is_no_engine_is_refused_with_its_place(
    given, environment, said
):
    with pytest.raises(InputError) as refused:
        choose(environment, **given)
    assert str(refused.value).startswith(said)


def test_a_token_in_an_address_is_refused_and_not_shown():
    with pytest.raises(InputError, match="SPARK_CONNECT_AUTHENTICATE_TOKEN") as refused:
        choose({}, remote=f"{SERVER}/;token=s3cret")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("said", "trusts"), [("1", True), ("true", True), ("0", False), ("", False)]
)
def test_a_machine_is_trusted_by_option_or_environment(said, trusts):
    assert choose({TRUST: said}, engine="sail").trust_this_machine is trusts
    assert choose({}, engine="sail", trust_this_machine=True).trust_this_machine


@pytest.mark.parametrize("installed", [True, False])
def test_spark_without_its_jars_names_sail_where_that_is_installed(monkeypatch, installed):
    from strandline.lake.sessions import classic

    monkeypatch.setattr(classic, "delta_jars", lambda: [])
    monkeypatch.setattr(classic, "find_spec", lambda name: installed or None)
    with pytest.raises(InputError, match="run: strandline jars") as raised:
        classic._require_delta()
    assert ("--engine sail" in str(raised.value)) == installed
