"""The watermark's values at positions: wanted where a firing or a late record reports one."""
