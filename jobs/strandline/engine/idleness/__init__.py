"""Where channels can go idle: what they did, when they were idle, the watermark's steps."""
