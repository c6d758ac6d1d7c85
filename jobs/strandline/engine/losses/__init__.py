"""The number of records that each bound and allowed lateness would lose, from one pass."""
