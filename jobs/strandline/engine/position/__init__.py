"""Where a record and a tick stand: instants as numbers, windows as a grid of numbers."""
