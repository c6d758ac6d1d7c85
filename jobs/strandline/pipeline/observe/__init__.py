"""Observation: what has landed, what earlier runs have observed, what is observed now."""
