"""Judging what a run has staged, by Great Expectations."""
