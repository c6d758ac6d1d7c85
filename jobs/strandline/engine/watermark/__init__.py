"""Observation of the watermark: cells, crossings, violations of order."""
