"""docker-compose.yml, as Compose itself reads it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).resolve().parents[2]
SECRETS = [
    "POSTGRES_PASSWORD",
    "AIRFLOW_FERNET_KEY",
    "AIRFLOW_JWT_SECRET",
    "AIRFLOW_SECRET_KEY",
    "AIRFLOW_ADMIN_PASSWORD",
]


def _command() -> list[str] | None:
    """`docker compose` where there is that plugin, else Debian's `docker-compose`, else nothing."""
    docker = shutil.which("docker")
    if docker:
        plugin = [docker, "compose"]
        if subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode == 0:
            return plugin
    standalone = shutil.which("docker-compose")
    return [standalone] if standalone else None


COMPOSE = _command()


def config(folder: Path, secrets: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """What `docker-compose --profile s3 config` says with these secrets, and no others."""
    assert COMPOSE is not None
    env_file = folder / "secrets.env"
    env_file.write_text("".join(f"{name}={value}\n" for name, value in secrets.items()))
    file = PROJECT / "docker-compose.yml"
    return subprocess.run(
        [*COMPOSE, "--env-file", env_file, "--file", file, "--profile", "s3", "config"],
        cwd=folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def configuration(folder: Path, secrets: Mapping[str, str]) -> dict[str, Any]:
    """The services by their names."""
    done = config(folder, secrets)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.safe_load(done.stdout)["services"]
    return found
