"""The rules of `quality` about a run's data, as pure functions of its counts."""
