"""Channels that can go idle: their activity, when they were idle, and the watermark's steps."""
