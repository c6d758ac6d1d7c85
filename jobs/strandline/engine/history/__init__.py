"""Everything observed of a pipeline below a horizon, and the part of it that a query needs."""
