"""Flink's event-time rules as pure functions of integers: whole milliseconds, no I/O, no clock."""
