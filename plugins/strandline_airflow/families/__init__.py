"""The DAGs: of one pipeline, by hand, and over all; `factory` builds them from pipeline files."""
