"""The landing table as records: read, malformed, duplicates, identity, quarantine rows."""
