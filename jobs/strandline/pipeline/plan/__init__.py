"""The plan of a run: the windows to rebuild, and the late records to evaluate again."""
