"""Strandline: exact event-time backfills, with Flink's watermark and lateness semantics in batch."""
