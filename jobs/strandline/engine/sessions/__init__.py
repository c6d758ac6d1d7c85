"""Sessions: those of one run of records by sets, all others by a replay of their chains."""
