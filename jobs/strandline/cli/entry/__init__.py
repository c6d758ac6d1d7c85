"""The file that `spark-submit` starts. Python searches imports in its folder, so it is alone."""
