"""Staged rows, their diff with published rows, and the one commit that applies it."""
