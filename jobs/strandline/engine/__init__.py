"""Flink's rules over whole tables: DataFrame in, DataFrame out, no I/O."""
