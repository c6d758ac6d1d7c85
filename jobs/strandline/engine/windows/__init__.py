"""Windows on a grid: records are assigned to windows, and these fire."""
