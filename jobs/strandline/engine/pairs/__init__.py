"""Interval joins: pairs of records whose event times lie within bounds of each other."""
