"""docker-compose.yml, as Compose itself reads it. No engine is needed for that."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[2]
SECRETS = [
    "POSTGRES_PASSWORD",
    "AIRFLOW_FERNET_KEY",
    "AIRFLOW_JWT_SECRET",
    "AIRFLOW_SECRET_KEY",
    "AIRFLOW_ADMIN_PASSWORD",
]


def compose_command() -> list[str] | None:
    """`docker compose` where there is that plugin, else Debian's `docker-compose`, else nothing."""
    docker = shutil.which("docker")
    if docker:
        plugin = [docker, "compose"]
        if subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode == 0:
            return plugin
    standalone = shutil.which("docker-compose")
    return [standalone] if standalone else None


COMPOSE = compose_command()
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        COMPOSE is None, reason="neither `docker compose` nor `docker-compose` is installed"
    ),
]


def config(tmp_path: Path, secrets: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What `docker-compose config` says with these secrets, and no others."""
    assert COMPOSE is not None
    env_file = tmp_path / "secrets.env"
    env_file.write_text("".join(f"{name}={value}\n" for name, value in secrets.items()))
    file = PROJECT / "docker-compose.yml"
    return subprocess.run(
        [*COMPOSE, "--env-file", str(env_file), "--file", str(file), "config"],
        cwd=tmp_path,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def secrets() -> dict[str, str]:
    return {name: f"made-up-{name.lower()}" for name in SECRETS}


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, secrets: dict[str, str]) -> dict[str, Any]:
    done = config(tmp_path_factory.mktemp("compose"), secrets)
    assert done.returncode == 0, done.stderr
    return yaml.safe_load(done.stdout)["services"]


def test_airflow_postgres_and_a_spark_cluster_are_there(services: dict[str, Any]) -> None:
    assert set(services) == {
        *("postgres", "init", "api-server", "scheduler", "dag-processor", "triggerer"),
        *("spark-master", "spark-worker"),
    }


def test_all_of_them_run_the_same_image_over_the_same_lake(services: dict[str, Any]) -> None:
    ours = {name: service for name, service in services.items() if name != "postgres"}
    assert {service["image"] for service in ours.values()} == {"strandline:local"}
    for name, service in ours.items():
        targets = [
            mount["target"] if isinstance(mount, dict) else mount.split(":")[1]
            for mount in service["volumes"]
        ]
        assert "/opt/strandline/lake" in targets, name


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
