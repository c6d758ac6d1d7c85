"""The advisor: the records that each bound and allowed lateness would lose, and its delay."""
