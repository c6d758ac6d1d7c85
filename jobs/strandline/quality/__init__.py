"""Data quality: the audit of a run before it is published, its findings, and the report."""
