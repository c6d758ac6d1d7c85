"""The object stores in Java of `make test-stores`, into .stores; nothing else needs them.

python scripts/fetch_stores.py     # quick when they are there
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "jobs"))
from strandline.errors import StrandlineError
from strandline.lake.jars import Jar, download, spark_jars_folder

STORES = Path(__file__).parents[1] / ".stores"
JARS = {
    "s3mock.jar": Jar(
        *("com.adobe.testing", "s3mock", "5.2.0"),
        "dd7c192fef0005374dec507317ae946eaa5beeffeb4e901d8b97f7fd2ddfb741",
        classifier="exec",
    ),
    "s3proxy.jar": Jar(
        *("org.gaul", "s3proxy", "4.1.0"),
        "a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d",
        classifier="jar-with-dependencies",
    ),
}


def main() -> None:
    """Fetch what is not there yet."""
    absent = {name: jar for name, jar in JARS.items() if not (STORES / name).exists()}
    if absent:
        download([*absent.values()], spark_jars_folder(), STORES, os.environ)
    for name, jar in absent.items():
        if not jar.is_in(STORES):
            sys.exit(f"{jar.file_name} is not the one that was tried: its SHA-256 differs")
        (STORES / jar.file_name).rename(STORES / name)


if __name__ == "__main__":
    try:
        main()
    except StrandlineError as error:
        sys.exit(str(error))
