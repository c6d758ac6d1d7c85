"""What must not be green: rules about a run's data as pure functions of what was counted of it."""
