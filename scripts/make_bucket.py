"""Makes the bucket of STRANDLINE_LAKE, where that is on an object store and has none."""

from __future__ import annotations

import os
import sys
from urllib.parse import urlsplit

from pyarrow.fs import FileType, S3FileSystem

if __name__ == "__main__":
    lake = urlsplit(os.environ["STRANDLINE_LAKE"])
    if lake.scheme != "s3":
        sys.exit()
    store = S3FileSystem(
        endpoint_override=os.environ.get("AWS_ENDPOINT_URL"), allow_bucket_creation=True
    )
    if store.get_file_info(lake.netloc).type is FileType.NotFound:
        store.create_dir(lake.netloc)
