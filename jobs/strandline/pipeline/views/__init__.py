"""What a person asks of a pipeline between runs: its status, its report. They need no Spark."""
