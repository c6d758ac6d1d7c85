"""The proposal of a pipeline from a table or files, as guesses with a certainty and a reason."""
