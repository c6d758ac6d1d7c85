"""A pipeline proposed from a table or from files: guesses, each with how sure it is and why."""
