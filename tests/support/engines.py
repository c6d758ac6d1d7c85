"""Which engine the session of the tests is of."""

from __future__ import annotations

import os

ENGINE = os.environ.get("ENGINE", "spark")
"""spark, connect or sail."""
