"""Everything observed below a horizon, and which part of it a question needs."""
