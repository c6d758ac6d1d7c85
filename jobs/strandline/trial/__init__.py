"""Tests of pipelines without a lake: sample rows and the expected windows, in a file each."""
