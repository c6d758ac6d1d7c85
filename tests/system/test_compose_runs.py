"""Every command, path and health check of docker-compose.yml, run as processes of this machine.

What a container would be is a folder with the paths of the image; a service is at 127.0.0.1, each
port a free one. The entry is that of the image, and the environment what Compose gives.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from composed import COMPOSE, PROJECT, SECRETS, configuration

pytestmark = [
    pytest.mark.system,
    pytest.mark.deep,
    pytest.mark.skipif(
        not (COMPOSE and shutil.which("initdb") and shutil.which("weed")),
        reason="needs docker-compose, PostgreSQL and SeaweedFS",
    ),
]
IMAGE = "/opt/strandline"
OF_THE_LAKE = {
    "LAKE": "s3://lake/strandline",
    "AWS_ACCESS_KEY_ID": "made-up-id",
    "AWS_SECRET_ACCESS_KEY": "made-up-key",
    "AWS_REGION": "us-east-1",
    "AWS_ENDPOINT_URL": "http://store:8333",
    "AWS_ALLOW_HTTP": "true",
}
AIRFLOWS = ("api-server", "scheduler", "dag-processor", "triggerer")
SERVICES = ("store", "spark-master", "spark-worker", *AIRFLOWS)
_TIMEOUT_S = 400


def free_port() -> int:
    """A port that is free now, as is the one 10,000 above it: SeaweedFS takes both."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
        if port < 55_000:
            return port


class Stack:
    """The services as processes."""

    def __init__(self, folder: Path, services: dict) -> None:
        self.folder = folder
        self.image = folder / "image"
        self.services = services
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        names = ["postgres", "store", "api", "master", "master-page", "worker-page", "logs-1"]
        self.ports = {name: free_port() for name in [*names, "logs-2", *"abc"]}
        self.image.mkdir()
        for name in (".venv", "scripts", "jobs", "dags", "plugins", "pipelines"):
            (self.image / name).symlink_to(PROJECT / name)
        for name in ("lake", ".airflow", "store", "home"):
            (self.image / name).mkdir()

    def here(self, text: str, service: str) -> str:
        """A text of the configuration, as it is true on this machine."""
        page = "worker-page" if service == "spark-worker" else "master-page"
        for there, here in {
            "@postgres/": f"@127.0.0.1:{self.ports['postgres']}/",
            "http://store:8333": f"http://127.0.0.1:{self.ports['store']}",
            "localhost:8333": f"127.0.0.1:{self.ports['store']}",
            "api-server:8080": f"127.0.0.1:{self.ports['api']}",
            "localhost:8080": f"127.0.0.1:{self.ports['api']}",
            "localhost:8081": f"127.0.0.1:{self.ports[page]}",
            "8081": str(self.ports["master-page"]),
            "7077": str(self.ports["master"]),
            "spark-master": "127.0.0.1",
            "/home/strandline": str(self.image / "home"),
            IMAGE: str(self.image),
        }.items():
            text = text.replace(there, here)
        return text

    def environment(self, service: str) -> dict[str, str]:
        said = self.services[service].get("environment", {})
        given = {name: self.here(str(value), service) for name, value in said.items() if value}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.image / "home"),
            "no_proxy": "127.0.0.1,localhost",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_WEBUI_PORT": str(self.ports["worker-page"]),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.ports["api"]),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(self.ports["logs-1"]),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(self.ports["logs-2"]),
            **given,
        }

    def argv(self, command: list[str], service: str) -> list[str]:
        found = [self.here(word, service) for word in command]
        if service == "store" and "scripts/store.sh" in found:
            own = {"-s3.port": "store", "-master.port": "a", "-volume.port": "b"}
            own["-filer.port"] = "c"
            found += [f"{option}={self.ports[name]}" for option, name in own.items()]
        return found

    def run(self, command: list[str], service: str) -> subprocess.CompletedProcess[str]:
        """What a command says in a service's container, by the image's own entry."""
        return subprocess.run(
            ["bash", str(self.image / "scripts" / "entrypoint.sh"), *self.argv(command, service)],
            cwd=self.image,
            env=self.environment(service),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )

    def start(self, service: str) -> None:
        entry = ["bash", str(self.image / "scripts" / "entrypoint.sh")]
        with (self.folder / f"{service}.log").open("wb") as log:
            self.running[service] = subprocess.Popen(
                [*entry, *self.argv(self.services[service]["command"], service)],
                cwd=self.image,
                env=self.environment(service),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, service: str) -> None:
        """Ask a service's own health check until it is content."""
        check = self.services[service]["healthcheck"]["test"]
        assert check[0] == "CMD"
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            asked = subprocess.run(
                self.argv(check[1:], service),
                cwd=self.image,
                env=self.environment(service),
                capture_output=True,
                text=True,
                check=False,
            )
            if asked.returncode == 0:
                return
            log = (self.folder / f"{service}.log").read_text()[-3_000:]
            assert self.running[service].poll() is None, f"{service} has ended:\n{log}"
            assert time.monotonic() < deadline, f"{service}: {asked.stderr[-1_000:]}\n{log}"
            time.sleep(1)

    def end(self) -> None:
        for process in self.running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def a_database(stack: Stack):
    """PostgreSQL with the user, the password and the database that Compose's variables ask for."""
    said = stack.services["postgres"]["environment"]
    place = Path(tempfile.mkdtemp(prefix="strandline-pg."))
    as_it = [] if os.getuid() else ["runuser", "-u", "postgres", "--"]
    (place / "password").write_text(said["POSTGRES_PASSWORD"])
    if as_it:
        shutil.chown(place, "postgres")
    data, port = str(place / "data"), str(stack.ports["postgres"])
    made = ["initdb", "-D", data, "-U", said["POSTGRES_USER"], "-A", "scram-sha-256"]
    subprocess.run([*as_it, *made, f"--pwfile={place}/password"], check=True, capture_output=True)
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={place}"
    control = [*as_it, "pg_ctl", "-D", data, "-w"]
    started = [*control, "-l", str(place / "log"), "-o", options, "start"]
    subprocess.run(started, check=True, stdout=subprocess.DEVNULL)
    try:
        at = ["-h", "127.0.0.1", "-p", port, "-U", said["POSTGRES_USER"]]
        known = {**os.environ, "PGPASSWORD": said["POSTGRES_PASSWORD"]}
        subprocess.run(["createdb", *at, said["POSTGRES_DB"]], env=known, check=True)
        _, *check = stack.services["postgres"]["healthcheck"]["test"]
        subprocess.run([*check, "-h", "127.0.0.1", "-p", port], check=True, capture_output=True)
        yield
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, capture_output=True)
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stack")
    secrets = {
        **{name: f"madeup{number}" for number, name in enumerate(SECRETS)},
        "AIRFLOW_FERNET_KEY": "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=",
        "AIRFLOW_JWT_SECRET": "0" * 64,
        **OF_THE_LAKE,
    }
    stack = Stack(folder, configuration(folder, secrets))
    with a_database(stack):
        try:
            stack.start("store")
            done = stack.run(stack.services["init"]["command"], "init")
            assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]
            assert "landed s3://lake/strandline/landing/flights" in done.stdout + done.stderr
            for service in SERVICES[1:]:
                stack.start(service)
            yield stack
        finally:
            stack.end()


def test_every_service_that_stays_runs_and_its_health_check_is_content(stack):
    assert {*SERVICES, "postgres", "init"} == {*stack.services}
    for service in SERVICES:
        stack.wait_for(service)


def test_the_admin_signs_in_with_the_password_of_the_file_and_sees_the_mounted_pipelines(stack):
    stack.wait_for("api-server")
    found = json.loads(
        (stack.image / ".airflow" / "simple_auth_manager_passwords.json.generated").read_text()
    )
    assert found == {"admin": stack.services["api-server"]["environment"]["AIRFLOW_ADMIN_PASSWORD"]}
    said = stack.run(["strandline", "validate"], "scheduler")
    assert said.returncode == 0, said.stderr
    assert "flights" in said.stdout


def test_the_scheduler_has_the_lake_on_the_store_and_a_day_is_published_there(stack):
    day = ["strandline", "advance", "flights", "--to", "2013-01-02", "--engine", "sail"]
    day.append("--trust-this-machine")
    done = stack.run(day, "scheduler")
    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]
    said = stack.run(["strandline", "status", "flights"], "scheduler").stdout
    assert "s3://lake/strandline" in said
    assert "151 windows" in said
    assert not [*(stack.image / "lake").iterdir()]


def test_a_worker_has_registered_at_the_master_by_the_name_of_the_file(stack):
    stack.wait_for("spark-worker")
    deadline = time.monotonic() + _TIMEOUT_S
    while "Registering worker" not in (stack.folder / "spark-master.log").read_text():
        assert time.monotonic() < deadline
        time.sleep(1)


def test_the_store_does_not_start_without_credentials(stack):
    bare = {**stack.environment("store"), "AWS_SECRET_ACCESS_KEY": ""}
    done = subprocess.run(
        ["bash", str(stack.image / "scripts" / "store.sh"), str(stack.folder / "none")],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "AWS_SECRET_ACCESS_KEY is not set; set it in .env" in done.stderr
