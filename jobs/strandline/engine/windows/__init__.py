"""Windows on a grid: every record meets its windows, and these fire."""
