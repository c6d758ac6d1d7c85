"""One run, wired: observe → plan → rebuild into staging → audit → diff → publish."""

from strandline.pipeline.request import Outcome, Request
from strandline.pipeline.running import run

__all__ = ["Outcome", "Request", "run"]
