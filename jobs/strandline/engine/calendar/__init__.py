"""The windows of a range: where they fire and close, and what is counted in them."""
