"""The watermark's values at positions, for firings and late records that report one."""
