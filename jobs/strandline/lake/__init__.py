"""Every read and write of Delta tables: landing, timeline, results, staging, ledger, the lock."""
