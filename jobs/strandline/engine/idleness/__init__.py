"""Channels that can go idle: their activity, their idle periods, and the watermark's steps."""
