"""Upkeep of a pipeline's tables: compaction, retention, leftovers and erasure."""
