"""The DAGs, a family a file; `factory` makes them of a folder of pipeline files."""
