"""`strandline` as a Spark application: `spark-submit strandline_job.py advance PIPELINE --to …`."""

from __future__ import annotations

from strandline.cli import main

if __name__ == "__main__":
    main()
