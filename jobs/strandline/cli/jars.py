"""jars: Delta's jars for Spark, fetched once."""

from __future__ import annotations

import os
from collections.abc import Sequence

from strandline.cli import show
from strandline.cli.options import AsJson


def jars(*, as_json: AsJson = False) -> None:
    """Fetch Delta's jars for the engine spark.

    They are checked by their hashes. They come from Maven Central (DEFAULT_ARTIFACT_REPOSITORY
    names a mirror) and go to the jars of the installed pyspark. It needs Java, as Spark does; again
    it finds nothing to do.
    """
    from strandline.lake.jars import fetch  # noqa: PLC0415

    show.document(fetch(os.environ), as_json=as_json, human=_show)


def _show(fetched: Sequence[str]) -> None:
    for name in fetched:
        show.out.print(f"fetched {name}", highlight=False)
    if not fetched:
        show.out.print("nothing to fetch: Delta's jars are the locked ones")
