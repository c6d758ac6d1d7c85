"""All reads and writes of tables: landing, timeline, results, staging, ledger; and the lock."""
