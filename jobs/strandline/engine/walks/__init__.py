"""Windows that only a walk over their records tells of, those by the watermark's rises, too."""
