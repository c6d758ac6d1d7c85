"""The landing of a pipeline: one table, two tables, or the results of another pipeline."""
