"""The differences between staged and published rows, and their preview."""
