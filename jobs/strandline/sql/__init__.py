"""Spark SQL expressions, analysed without a session: calls, columns, operations and types."""
