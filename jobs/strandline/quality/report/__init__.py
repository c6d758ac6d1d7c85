"""The page that shows what runs have published."""
