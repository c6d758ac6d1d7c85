"""Sessions: by sets where one run of records is a session, else by a replay of their chains."""
