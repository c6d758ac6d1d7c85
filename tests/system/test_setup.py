"""The set-up's checks, run for real on made-up machines: no network, no Spark."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

PROJECT = Path(__file__).parents[2]
BASH = shutil.which("bash") or "bash"
TOOLS = ["awk", "cat", "dirname", "env", "flock", "grep", "mkdir", "rm", "sha256sum", "tail"]


@dataclass(frozen=True)
class Machine:
    """A copy of the set-up, and a PATH on which only what a test has put there is found."""

    project: Path
    bin: Path

    def command(self, name: str, script: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!{BASH}\n{script}\n")
        path.chmod(0o755)

    def java(self, version: str) -> None:
        self.command(
            "java",
            'echo "    java.home = /opt/java" >&2;'
            f' echo "    java.specification.version = {version}" >&2',
        )

    def python(self, version: str, *, venv: bool = True) -> None:
        missing = "" if venv else "*ensurepip*) exit 1 ;; "
        self.command("python3", f'case "$*" in {missing}*version_info*) echo {version} ;; esac')

    def installs_nothing(self, calls: Path) -> None:
        """Its Python makes an environment of stand-ins, which note how they are called."""
        venv = self.project / ".venv"
        note = f'echo "${{0##*/}} $*" >>{calls}'
        self.command(
            "stand-in",
            f'{note}; case "$*" in *version_info*) echo 3.12 ;; '
            '"db migrate") : >"$AIRFLOW_HOME/airflow.db" ;; esac',
        )
        made = "".join(
            f"{shutil.which('ln')} -sf {self.bin}/stand-in {venv}/bin/{name}; "
            for name in ("python", "uv", "airflow")
        )
        self.command(
            "python3",
            'case "$*" in *version_info*) echo 3.12 ;; '
            f'"-m venv"*) mkdir -p {venv}/bin; {made} echo {venv} >{venv}/bin/activate ;; esac',
        )

    def user(self, uid: int) -> None:
        self.command("id", f"echo {uid}")

    def packages(self, *available: str, installs: str | None = None) -> None:
        """Debian's tools and what they have; an installation puts the command `installs` there."""
        known = "|".join(available) or "none"
        self.command(
            "apt-cache",
            f'case "$2" in {known}) echo "  Candidate: 1.0" ;;'
            ' *) echo "  Candidate: (none)" ;; esac',
        )
        act = "exit 100"  # what apt-get says to a package that it cannot fetch
        if installs:
            (self.bin / installs).rename(self.project / "package")
            act = f"{shutil.which('mv')} {self.project / 'package'} {self.bin / installs}"
        self.command("apt-get", f'case "$*" in *install*) {act} ;; esac')

    def set_up(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BASH, str(self.project / "scripts" / "setup.sh"), *arguments],
            env={
                "PATH": str(self.bin),
                "HOME": str(self.project),
                "STRANDLINE_JVM_FOLDER": str(self.project / "jvm"),
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def refusal(self, *arguments: str, **environment: str) -> str:
        """The one sentence with which the set-up ends."""
        done = self.set_up(*arguments, **environment)
        assert done.returncode == 1, done
        (line,) = done.stderr.splitlines()
        assert line.startswith("set-up: ")
        return line


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A Debian with Java 17 and Python 3.12 on which the user is not root."""
    project, tools = tmp_path / "project", tmp_path / "bin"
    tools.mkdir()
    shutil.copytree(PROJECT / "scripts", project / "scripts")
    for name in ("requirements.lock", "pyproject.toml"):
        shutil.copy(PROJECT / name, project)
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, f"{tool} is missing on this machine"
        (tools / tool).symlink_to(found)
    made = Machine(project, tools)
    made.user(1000)
    made.packages("openjdk-17-jre-headless", "python3.11-venv", "python3-venv")
    made.java("17")
    made.python("3.12")
    return made


def test_a_java_too_old_is_refused_with_what_to_type(machine: Machine) -> None:
    machine.java("11")
    said = machine.refusal()
    assert "Java 17 or 21 is missing (java is Java 11)" in said
    assert said.endswith("sudo apt-get update && sudo apt-get install -y openjdk-17-jre-headless")


def test_without_any_java_the_package_named_is_one_that_there_is(machine: Machine) -> None:
    (machine.bin / "java").unlink()
    machine.packages("openjdk-21-jre-headless")
    said = machine.refusal()
    assert "there is no java" in said
    assert said.endswith("install -y openjdk-21-jre-headless")


def test_a_java_that_lacks_what_spark_needs_counts_for_none(machine: Machine) -> None:
    machine.command("java", 'echo "Module jdk.incubator.vector not found" >&2; exit 1')
    assert "java is not one that Spark can use" in machine.refusal()


def test_a_java_elsewhere_on_the_machine_is_found(machine: Machine) -> None:
    home = machine.project / "jvm" / "java-21"
    (home / "bin").mkdir(parents=True)
    machine.java("21")
    (machine.bin / "java").rename(home / "bin" / "java")
    machine.java("25")
    assert "Java" not in machine.refusal(PYTHON="nowhere")


def test_root_on_debian_has_java_installed_and_is_told_so(machine: Machine) -> None:
    machine.user(0)
    machine.packages("openjdk-17-jre-headless", installs="java")
    done = machine.set_up(PYTHON="nowhere")
    assert "Java 17 or 21 is missing (there is no java)" in done.stdout
    assert "installing openjdk-17-jre-headless" in done.stdout
    assert "PYTHON=nowhere" in done.stderr  # the next check, so Java is there


def test_an_installation_that_fails_is_one_sentence_too(machine: Machine) -> None:
    machine.user(0)
    (machine.bin / "java").unlink()
    assert "apt-get could not install openjdk-17-jre-headless" in machine.refusal()


def test_away_from_debian_the_sentence_names_no_command_that_is_not_there(machine: Machine) -> None:
    machine.java("8")
    (machine.bin / "apt-get").unlink()
    said = machine.refusal()
    assert "Java 17 or 21 is missing (java is Java 8)" in said
    assert "apt-get" not in said


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.14"])
def test_a_python_outside_its_range_is_refused_with_what_to_type(
    machine: Machine, version: str
) -> None:
    machine.python(version)
    said = machine.refusal()
    assert f"Python 3.11 to 3.13 is missing (python3 is Python {version})" in said
    assert said.endswith("install -y python3.11-venv")


def test_a_chosen_python_outside_the_range_is_refused(machine: Machine) -> None:
    machine.python("3.10")
    said = machine.refusal(PYTHON="python3")
    assert "PYTHON=python3 is no Python 3.11 to 3.13 (python3 is Python 3.10)" in said


def test_a_python_without_its_venv_module_is_refused_with_what_to_type(machine: Machine) -> None:
    machine.python("3.12", venv=False)
    said = machine.refusal()
    assert "python3 has no venv module" in said
    assert said.endswith("install -y python3-venv")


def test_a_missing_tool_is_named(machine: Machine) -> None:
    (machine.bin / "awk").unlink()
    assert "the command awk is missing" in machine.refusal()


def test_a_path_with_a_space_is_refused_before_spark_trips_over_it(machine: Machine) -> None:
    moved = machine.project.rename(machine.project.with_name("my project"))
    assert "a space in it" in Machine(moved, machine.bin).refusal()


def test_an_environment_that_is_a_link_is_left_alone(machine: Machine) -> None:
    elsewhere = machine.project.with_name("elsewhere")
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (machine.project / ".venv").symlink_to(elsewhere)
    assert ".venv is a link" in machine.refusal()
    assert (elsewhere / "kept").exists()


def test_an_unknown_step_is_refused(machine: Machine) -> None:
    assert "there is no step 'everthing'" in machine.refusal("everthing")


def test_no_network_is_one_sentence_that_says_which_step_needed_it(machine: Machine) -> None:
    nowhere = "http://127.0.0.1:9/simple"
    said = machine.refusal(
        PYTHON=sys.executable, PIP_INDEX_URL=nowhere, PIP_RETRIES="0", PIP_CONFIG_FILE="/dev/null"
    )
    assert "installing uv failed for want of a network" in said
    assert "PyPI and Maven Central once" in said


def test_another_engine_than_there_is_is_refused(machine: Machine) -> None:
    assert "ENGINE=flink is no engine" in machine.refusal(ENGINE="flink")


@pytest.mark.parametrize("engine", ["sail", "connect"])
def test_a_machine_without_java_is_set_up_for_an_engine_that_needs_none(
    machine: Machine, engine: str
) -> None:
    """To its end, with stand-ins for what it installs: only their calls are noted."""
    (machine.bin / "java").unlink()
    calls = machine.project / "calls"
    machine.installs_nothing(calls)
    assert "Java 17 or 21 is missing" in machine.refusal()
    done = machine.set_up(ENGINE=engine)
    assert (done.returncode, done.stderr) == (0, ""), done
    called = calls.read_text()
    steps = ("-m pip install", "uv pip sync", "-m compileall", "uv pip install", "db migrate")
    for step in steps:
        assert step in called
    assert "fetch_jars" not in called and "archive_classes" not in called
    assert "rehearsing" not in done.stdout
    again = machine.set_up(ENGINE=engine)
    assert (again.returncode, again.stdout) == (0, "")
    assert "Java 17 or 21 is missing" in machine.refusal()  # what needs it still asks for it


@pytest.mark.skipif(
    (PROJECT / ".venv").is_symlink()
    or not (PROJECT / ".venv" / "share" / "strandline" / "project").exists(),
    reason="this environment was not made by scripts/setup.sh, or for another folder",
)
def test_a_second_set_up_finds_nothing_to_do() -> None:
    done = subprocess.run(
        [BASH, str(PROJECT / "scripts" / "setup.sh"), "project"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
