"""The audit of a staged run: books, checks of arrivals and channels, and the verdict."""
