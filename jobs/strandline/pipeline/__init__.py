"""One run, wired: observe → plan → rebuild into staging → audit → diff → publish.

`run.run` is the way in. `views` need no Spark, so nothing is imported here.
"""
