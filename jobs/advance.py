"""A scheduled run as a Spark application: `spark-submit jobs/advance.py PIPELINE --to …`.

It has the arguments, environment and exit codes of `strandline advance`.
"""

from __future__ import annotations

import sys

from strandline.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "advance")
    main()
