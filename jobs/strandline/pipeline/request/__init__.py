"""The request of a run, what is refused or answered before it observes, and its ledger entries."""
