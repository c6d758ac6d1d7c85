"""Puts Delta's jars into pyspark's own `jars` folder, so that every session has them.

Spark's own Ivy downloads them, once, into the environment's `share` folder; from then on neither a
session nor a reinstalled pyspark needs the network. What comes must have the hashes of `jars.lock`.

    python scripts/fetch_jars.py           # quick when they are there
    python scripts/fetch_jars.py --lock    # downloads, and writes the hashes of jars.lock anew
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import quoteattr

LOCK = Path(__file__).with_name("jars.lock")
STORE = Path(sys.prefix) / "share" / "strandline" / "jars"


@dataclass(frozen=True)
class Jar:
    """One line of the lock: `group:artifact:version sha256:…`."""

    group: str
    artifact: str
    version: str
    sha256: str

    @classmethod
    def from_line(cls, line: str) -> Jar:
        """Reads a line of the lock."""
        coordinates, _, digest = line.partition(" ")
        group, artifact, version = coordinates.split(":")
        return cls(group, artifact, version, digest.strip().removeprefix("sha256:"))

    @property
    def file_name(self) -> str:
        """The name that Spark's own `spark.jars.packages` would give it."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"

    def is_in(self, folder: Path) -> bool:
        """Whether the folder holds exactly this jar."""
        path = folder / self.file_name
        return path.is_file() and sha256_of(path) == self.sha256


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def jars_of(lock: str) -> list[Jar]:
    """The jars that the lock names."""
    return [Jar.from_line(line) for line in lock.splitlines() if line and not line.startswith("#")]


def download(jars: list[Jar], spark_jars: Path, target: Path) -> None:
    """Fetches the jars, and nothing that they depend on, with the Ivy that Spark ships.

    Ivy's own default repository is Maven Central; DEFAULT_ARTIFACT_REPOSITORY names a mirror, as
    for Spark.

    Raises:
        SystemExit: Ivy could not find or reach one of them; its output has been printed.
    """
    mirror = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    root = f" root={quoteattr(mirror)}" if mirror else ""
    wanted = "".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}"'
        ' transitive="false"/>'
        for jar in jars
    )
    with TemporaryDirectory() as folder:
        settings, module = Path(folder, "settings.xml"), Path(folder, "ivy.xml")
        settings.write_text(
            '<ivysettings><settings defaultResolver="central"/>'
            f'<caches defaultCacheDir="{folder}"/><resolvers>'
            f'<ibiblio name="central" m2compatible="true" usepoms="false"{root}/>'
            "</resolvers></ivysettings>"
        )
        module.write_text(
            '<ivy-module version="2.0"><info organisation="strandline" module="jars"/>'
            f'<dependencies defaultconf="default->default">{wanted}</dependencies></ivy-module>'
        )
        (ivy,) = spark_jars.glob("ivy-*.jar")
        java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
        command: list[str | Path] = [
            *(java, "-jar", ivy, "-settings", settings, "-ivy", module),
            *("-retrieve", f"{target}/[organisation]_[artifact]-[revision].[ext]"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)


def put(jar: Jar, folder: Path) -> None:
    """Copies the jar from the store, so that a reader meets all of it or nothing."""
    half = folder / f".{jar.file_name}.part"
    shutil.copyfile(STORE / jar.file_name, half)
    half.replace(folder / jar.file_name)


def fetch() -> None:
    """Brings pyspark's `jars` folder to what the lock says.

    Raises:
        SystemExit: a jar cannot be had, or is not the one that was locked.
    """
    spark_jars = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    jars = jars_of(LOCK.read_text())
    missing = [jar for jar in jars if not jar.is_in(spark_jars)]
    if not missing:
        return
    STORE.mkdir(parents=True, exist_ok=True)
    absent = [jar for jar in missing if not jar.is_in(STORE)]
    for jar in absent:
        (STORE / jar.file_name).unlink(missing_ok=True)  # Ivy keeps what is there, even half a file
    if absent:
        download(absent, spark_jars, STORE)
    for jar in absent:
        if not jar.is_in(STORE):
            sys.exit(f"{jar.file_name} is not the one that {LOCK.name} names: its SHA-256 differs")
    for group in {jar.group for jar in jars}:
        for other in spark_jars.glob(f"{group}_*.jar"):
            if other.name not in {jar.file_name for jar in jars}:
                other.unlink()
    for jar in missing:
        put(jar, spark_jars)


def lock() -> None:
    """Downloads the jars that the lock names and writes their hashes into it."""
    spark_jars = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    head = [line for line in LOCK.read_text().splitlines() if line.startswith("#")]
    jars = jars_of(LOCK.read_text())
    with TemporaryDirectory() as folder:
        download(jars, spark_jars, Path(folder))
        rows = [
            f"{jar.group}:{jar.artifact}:{jar.version}"
            f" sha256:{sha256_of(Path(folder, jar.file_name))}"
            for jar in jars
        ]
    LOCK.write_text("\n".join([*head, *rows]) + "\n")


if __name__ == "__main__":
    lock() if sys.argv[1:] == ["--lock"] else fetch()
