"""The oracle is two scripts beside the tests, not a package: let them be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
