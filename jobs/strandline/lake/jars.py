"""Delta's jars in pyspark's folder `jars`, so that every session has them.

Spark's Ivy downloads them once into the environment's folder `share`; later sessions, and a
reinstalled pyspark, need no network. The files must have the hashes in `jars.lock`.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import quoteattr

from strandline.errors import InputError, RetryableError, not_writable

LOCK = Path(__file__).with_name("jars.lock")
STORE = Path(sys.prefix) / "share" / "strandline" / "jars"
_PLACE = "strandline jars"
_MAVEN = "http://ant.apache.org/ivy/maven"


@dataclass(frozen=True)
class Jar:
    """One line of the lock: `group:artifact:version sha256:…`.

    Attributes:
        classifier: the classifier, if a version has several jars; empty for the plain one.
    """

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""

    @classmethod
    def from_line(cls, line: str) -> Jar:
        """Parse a line of the lock."""
        coordinates, _, digest = line.partition(" ")
        group, artifact, version = coordinates.split(":")
        return cls(group, artifact, version, digest.strip().removeprefix("sha256:"))

    @property
    def file_name(self) -> str:
        """The file's name, as `spark.jars.packages` would name it."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"

    def is_in(self, folder: Path) -> bool:
        """Whether a folder contains exactly this jar."""
        path = folder / self.file_name
        return path.is_file() and sha256_of(path) == self.sha256


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def locked_jars() -> list[Jar]:
    """The jars in the lock."""
    lines = LOCK.read_text().splitlines()
    return [Jar.from_line(line) for line in lines if line and not line.startswith("#")]


def spark_jars_folder() -> Path:
    """The folder `jars` of the installed pyspark.

    Raises:
        InputError: pyspark is not installed.
    """
    try:
        found = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    except PackageNotFoundError:
        raise InputError(_PLACE, "pyspark is not installed", "install strandline[spark]") from None
    if not found.is_dir():
        raise InputError(_PLACE, f"there is no {found}", "install pyspark, not its client alone")
    return found


def download(
    jars: list[Jar], spark_jars: Path, target: Path, environment: Mapping[str, str]
) -> None:
    """Download the jars, without their dependencies, with the Ivy that Spark ships.

    The repository is Maven Central, or the mirror in DEFAULT_ARTIFACT_REPOSITORY; JAVA_HOME may
    name a Java.

    Raises:
        InputError: there is no Java.
        RetryableError: a jar was not found, or could not be downloaded.
    """
    with TemporaryDirectory() as folder:
        settings, module = Path(folder, "settings.xml"), Path(folder, "ivy.xml")
        settings.write_text(_ivy_settings(folder, environment.get("DEFAULT_ARTIFACT_REPOSITORY")))
        module.write_text(_ivy_module(jars))
        (ivy,) = spark_jars.glob("ivy-*.jar")
        home = environment.get("JAVA_HOME")
        java = Path(home, "bin", "java") if home else "java"
        command: list[str | Path] = [
            *(java, "-jar", ivy, "-settings", settings, "-ivy", module),
            *("-retrieve", f"{target}/[organisation]_[artifact]-[revision].[ext]"),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            problem, way_out = f"no Java ({error.strerror})", "install Java 17, or set JAVA_HOME"
            raise InputError(_PLACE, problem, way_out) from None
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip()
        way_out = "go online, or name a mirror with DEFAULT_ARTIFACT_REPOSITORY"
        raise RetryableError(_PLACE, f"Ivy could not fetch them:\n{output}\n", way_out)


def _ivy_settings(cache: str, mirror: str | None) -> str:
    """Ivy's settings: a cache folder, and Maven Central or its mirror."""
    root = f" root={quoteattr(mirror)}" if mirror else ""
    return (
        '<ivysettings><settings defaultResolver="central"/>'
        f'<caches defaultCacheDir="{cache}"/><resolvers>'
        f'<ibiblio name="central" m2compatible="true" usepoms="false"{root}/>'
        "</resolvers></ivysettings>"
    )


def _ivy_module(jars: list[Jar]) -> str:
    """An Ivy module that depends on just these jars."""
    wanted = "".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}"'
        f' transitive="false">{_artifact(jar)}</dependency>'
        for jar in jars
    )
    return (
        f'<ivy-module version="2.0" xmlns:m="{_MAVEN}">'
        '<info organisation="strandline" module="jars"/>'
        f'<dependencies defaultconf="default->default">{wanted}</dependencies></ivy-module>'
    )


def _artifact(jar: Jar) -> str:
    """The Ivy artifact of a jar with a classifier; the plain jar needs none."""
    if not jar.classifier:
        return ""
    return f'<artifact name="{jar.artifact}" type="jar" m:classifier="{jar.classifier}"/>'


def put(jar: Jar, folder: Path) -> None:
    """Copy a jar from the store atomically."""
    half = folder / f".{jar.file_name}.part"
    shutil.copyfile(STORE / jar.file_name, half)
    half.replace(folder / jar.file_name)


def fetch(environment: Mapping[str, str], into: Path | None = None) -> list[str]:
    """Add the missing jars of the lock to a folder, and return their names.

    Args:
        environment: see `download`.
        into: the folder; None: pyspark's `jars`.

    Raises:
        InputError: pyspark or Java is missing, a jar has another hash than in the lock, or the
            folder cannot be written.
        RetryableError: a jar cannot be downloaded.
    """
    folder = into or spark_jars_folder()
    jars = locked_jars()
    missing = [jar for jar in jars if not jar.is_in(folder)]
    try:
        _bring(missing, folder, environment)
        for group in {jar.group for jar in jars}:
            for other in folder.glob(f"{group}_*.jar"):
                if missing and other.name not in {jar.file_name for jar in jars}:
                    other.unlink()
    except OSError as error:
        raise not_writable(str(error.filename or folder), error) from None
    return [jar.file_name for jar in missing]


def _bring(missing: list[Jar], folder: Path, environment: Mapping[str, str]) -> None:
    """Add jars to a folder, from the store if it has them."""
    if missing:
        STORE.mkdir(parents=True, exist_ok=True)
    absent = [jar for jar in missing if not jar.is_in(STORE)]
    for jar in absent:
        (STORE / jar.file_name).unlink(missing_ok=True)  # Ivy keeps what is there, even half a file
    if absent:
        download(absent, spark_jars_folder(), STORE, environment)
    for jar in absent:
        if not jar.is_in(STORE):
            problem = f"{jar.file_name} is not the one that {LOCK.name} names: its SHA-256 differs"
            raise InputError(_PLACE, problem, "compare the mirror's file with the lock file")
    for jar in missing:
        put(jar, folder)
