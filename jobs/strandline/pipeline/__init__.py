"""One run, wired: observe → plan → rebuild into staging → audit → diff → publish.

`running.run` is the way in. Status and report need no Spark, so nothing is imported here.
"""
