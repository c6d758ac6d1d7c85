"""Positions of records and ticks as numbers, and windows as a grid of numbers."""
