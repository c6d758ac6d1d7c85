"""Publish a prepared run: `spark-submit jobs/publish.py PIPELINE RUN`.

It has the arguments, environment and exit codes of `strandline runs publish`.
"""

from __future__ import annotations

import sys

from strandline.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["runs", "publish"]
    main()
