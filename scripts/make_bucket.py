"""Makes the bucket of STRANDLINE_LAKE, where that is on an object store and has none.

Waits two minutes for a server that is about to start.
"""

from __future__ import annotations

import os
import sys
import time
from urllib.parse import urlsplit

from pyarrow.fs import FileType, S3FileSystem

_TIMEOUT_S, _PAUSE_S = 120, 2


def make_bucket(name: str) -> None:
    """Make a bucket where there is none of this name."""
    store = S3FileSystem(
        endpoint_override=os.environ.get("AWS_ENDPOINT_URL"), allow_bucket_creation=True
    )
    if store.get_file_info(name).type is FileType.NotFound:
        store.create_dir(name)


if __name__ == "__main__":
    lake, deadline = urlsplit(os.environ["STRANDLINE_LAKE"]), time.monotonic() + _TIMEOUT_S
    while lake.scheme == "s3":
        try:
            make_bucket(lake.netloc)
            break
        except OSError as error:
            if "ACCESS_DENIED" in str(error) or time.monotonic() > deadline:
                sys.exit(f"bucket {lake.netloc}: {error}")
            time.sleep(_PAUSE_S)
