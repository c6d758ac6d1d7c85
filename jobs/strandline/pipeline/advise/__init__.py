"""The advisor: what each bound and allowed lateness would lose, and cost in delay."""
