"""The timeline of a pipeline: the facts of each arrival day, stored and read day by day."""
