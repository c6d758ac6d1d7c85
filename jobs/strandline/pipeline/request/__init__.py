"""The request of a run: its checks, answers without a run, and its steps in the ledger."""
