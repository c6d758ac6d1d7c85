"""A backfill as a Spark application: `spark-submit jobs/backfill.py PIPELINE --start … --end …`.

It has the arguments, environment and exit codes of `strandline backfill`.
"""

from __future__ import annotations

import sys

from strandline.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "backfill")
    main()
