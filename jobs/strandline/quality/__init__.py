"""Judging a run before it is published, and showing what came of it."""
