"""The replay: records go one by one through Flink's window operator, in workers of the engine.

For windows with another trigger than the default one, an evictor, or a user's function.
"""
