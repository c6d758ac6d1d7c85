"""Views of a pipeline between runs: its status, its report. No Spark."""
