"""The `strandline` command: arguments in, one run or one read, figures out."""

from strandline.cli.main import main

__all__ = ["main"]
