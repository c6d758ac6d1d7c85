"""A pipeline tested without a lake: sample rows beside its file, and the windows they must give."""
