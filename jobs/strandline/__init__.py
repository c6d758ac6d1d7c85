"""Strandline: exact event-time backfills, Flink's watermark and lateness semantics in batch."""
