"""The audit of a run's staged tables by Great Expectations."""
