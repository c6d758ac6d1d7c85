"""The rebuild of a plan into staging, piece by piece."""
