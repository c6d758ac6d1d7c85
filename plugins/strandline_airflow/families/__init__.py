"""The kinds of DAGs, one in each file; `factory` builds them from a folder of pipeline files."""
