"""The `strandline` command: it reads arguments, makes one run or one read, and shows the result."""

from strandline.cli.main import main

__all__ = ["main"]
