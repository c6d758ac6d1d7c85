"""docker-compose.yml, as Compose itself reads it. No engine is needed for that."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from composed import COMPOSE, PROJECT, SECRETS, config, configuration

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        COMPOSE is None, reason="neither `docker compose` nor `docker-compose` is installed"
    ),
]


@pytest.fixture(scope="module")
def secrets() -> dict[str, str]:
    return {name: f"made-up-{name.lower()}" for name in SECRETS}


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, secrets: dict[str, str]) -> dict[str, Any]:
    return configuration(tmp_path_factory.mktemp("compose"), secrets)


def test_airflow_postgres_and_a_spark_cluster_are_there(services: dict[str, Any]) -> None:
    assert set(services) == {
        *("postgres", "init", "api-server", "scheduler", "dag-processor", "triggerer"),
        *("spark-master", "spark-worker", "store"),
    }
    assert services["store"]["profiles"] == ["s3"]


def test_all_of_them_run_the_same_image_over_the_same_lake(services: dict[str, Any]) -> None:
    ours = {name: service for name, service in services.items() if name != "postgres"}
    assert {service["image"] for service in ours.values()} == {"strandline:local"}
    for name, service in ours.items():
        place = "store" if name == "store" else "lake"
        assert f"/opt/strandline/{place}" in mounts(service), name


def mounts(service: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """Which place is what, and whether it can only be read."""
    found = {}
    for mount in service.get("volumes", []):
        if isinstance(mount, dict):
            found[mount["target"]] = mount["source"], mount.get("read_only", False)
        else:
            source, target, *mode = mount.split(":")
            found[target] = source, mode == ["ro"]
    return found


def test_pipelines_are_mounted_and_not_baked_in(services: dict[str, Any]) -> None:
    airflows = ("init", "api-server", "scheduler", "dag-processor", "triggerer")
    for name in airflows:
        mounted = mounts(services[name])["/opt/strandline/pipelines"]
        assert mounted == (str(PROJECT / "pipelines"), True), name
    assert "pipelines" in (PROJECT / ".dockerignore").read_text().splitlines()


def test_every_service_that_stays_has_a_health_check_and_no_more_rights_than_it_needs(
    services: dict[str, Any],
) -> None:
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert name == "init" or service["healthcheck"]["test"], name
    assert services["postgres"]["user"] == "postgres"
    image = (PROJECT / "Dockerfile").read_text()
    assert re.findall(r"^USER (.*)$", image, re.MULTILINE) == ["strandline"]


def test_the_lake_is_a_volume_unless_the_file_of_secrets_names_a_store(
    tmp_path: Path, secrets: dict[str, str], services: dict[str, Any]
) -> None:
    environment = services["scheduler"]["environment"]
    assert environment["STRANDLINE_LAKE"] == "/opt/strandline/lake"
    assert not any(value for name, value in environment.items() if name.startswith("AWS_"))
    example = (PROJECT / ".env.example").read_text()
    named = dict(re.findall(r"^# ((?:LAKE|AWS_\w+))=(.*)$", example, re.MULTILINE))
    assert named.pop("AWS_ACCESS_KEY_ID") == named.pop("AWS_SECRET_ACCESS_KEY") == ""
    made = {**named, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}
    of_a_store = configuration(tmp_path, {**secrets, **made})
    for name in {*of_a_store} - {"postgres"}:
        found = of_a_store[name]["environment"]
        assert found["STRANDLINE_LAKE"] == made["LAKE"], name
        assert {key: found[key] for key in made if key != "LAKE"} == {
            key: value for key, value in made.items() if key != "LAKE"
        }


def test_what_the_image_copies_first_is_enough_to_fetch_the_jars(tmp_path: Path) -> None:
    for line in re.findall(r"^COPY (.+)$", (PROJECT / "Dockerfile").read_text(), re.MULTILINE):
        *sources, target = line.split()
        for source in sources if target != "." else []:
            (tmp_path / target).mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / source, tmp_path / target)
    asked = "import runpy; runpy.run_path('scripts/fetch_jars.py')"
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-c", asked], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_airflow_submits_to_the_cluster(services: dict[str, Any]) -> None:
    connection = yaml.safe_load(services["scheduler"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert connection == {"conn_type": "spark", "host": "spark://spark-master", "port": 7077}


def test_nothing_listens_beyond_this_machine(services: dict[str, Any]) -> None:
    published = [
        (port["host_ip"] if isinstance(port, dict) else port.split(":")[0])
        for service in services.values()
        for port in service.get("ports", [])
    ]
    assert published
    assert set(published) == {"127.0.0.1"}


@pytest.mark.parametrize("missing", SECRETS)
def test_a_secret_that_is_not_set_is_named(
    tmp_path: Path, secrets: dict[str, str], missing: str
) -> None:
    done = config(tmp_path, {name: secrets[name] for name in SECRETS if name != missing})
    assert done.returncode != 0
    assert missing in done.stderr
    assert ".env.example" in done.stderr


def test_the_example_as_it_is_starts_nothing(tmp_path: Path) -> None:
    done = config(tmp_path, dict.fromkeys(SECRETS, ""))
    assert done.returncode != 0
    assert "POSTGRES_PASSWORD" in done.stderr


def test_the_example_names_every_secret_and_sets_none() -> None:
    example = (PROJECT / ".env.example").read_text()
    assert dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE)) == dict.fromkeys(SECRETS, "")
