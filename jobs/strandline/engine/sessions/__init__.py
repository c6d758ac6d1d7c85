"""Sessions, found as sets instead of record by record."""
