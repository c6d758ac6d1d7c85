"""The windows of a range: when they fire and close, and how many records they count."""
