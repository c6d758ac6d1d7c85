"""Flink's rules over whole tables: DataFrame in, DataFrame out, no I/O. See docs on the algorithm."""
