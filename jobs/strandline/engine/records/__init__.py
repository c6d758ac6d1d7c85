"""Landing rows as records: reading, malformed rows, duplicates, identity, quarantine rows."""
