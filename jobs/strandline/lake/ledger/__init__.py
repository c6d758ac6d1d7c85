"""The ledger of a pipeline: its steps, and the state that they add up to."""
