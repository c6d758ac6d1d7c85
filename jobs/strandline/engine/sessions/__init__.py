"""Session windows: most are found by Spark aggregates, only disputed ones by a record replay."""
