"""What windows of all kinds hold: the user's aggregates."""
