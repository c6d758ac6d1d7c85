"""The data-quality report: an HTML page about the published tables."""
