"""Delta's jars before the project is installed: what `strandline jars` does.

python scripts/fetch_jars.py           # quick when they are there
python scripts/fetch_jars.py --lock    # downloads, and writes the hashes of jars.lock anew
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "jobs"))
from strandline.errors import StrandlineError
from strandline.lake.jars import LOCK, download, fetch, locked_jars, sha256_of, spark_jars_folder


def lock() -> None:
    """Downloads the jars that the lock names and writes their hashes into it."""
    spark_jars = spark_jars_folder()
    head = [line for line in LOCK.read_text().splitlines() if line.startswith("#")]
    jars = locked_jars()
    with TemporaryDirectory() as folder:
        download(jars, spark_jars, Path(folder), os.environ)
        rows = [
            f"{jar.group}:{jar.artifact}:{jar.version}"
            f" sha256:{sha256_of(Path(folder, jar.file_name))}"
            for jar in jars
        ]
    LOCK.write_text("\n".join([*head, *rows]) + "\n")


if __name__ == "__main__":
    try:
        lock() if sys.argv[1:] == ["--lock"] else fetch(os.environ)
    except StrandlineError as error:
        sys.exit(str(error))
