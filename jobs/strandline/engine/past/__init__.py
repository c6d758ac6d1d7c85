"""What was observed below a horizon, and what of it a question needs."""
