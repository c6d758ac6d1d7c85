"""The rows of windows and firings of all kinds, with the user's aggregates."""
