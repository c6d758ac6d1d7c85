"""The file that `spark-submit` starts: alone in its folder, from where imports are looked for."""
