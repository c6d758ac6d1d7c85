"""Flink's event-time rules record by record: the definition that the engine is tested against."""
