"""Notes of a run for a person, in addition to its figures."""
