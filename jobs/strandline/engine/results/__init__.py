"""The contents of windows of all kinds: the user's aggregates."""
