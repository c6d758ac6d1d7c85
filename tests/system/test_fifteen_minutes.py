"""The page 'Your own table in fifteen minutes', followed literally."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "fifteen-minutes.md"
BLOCK = re.compile(r"```(bash|text)\n(.*?)```", re.DOTALL)


@pytest.mark.system
def test_the_page_is_right_to_the_letter(tmp_path):
    environment = os.environ | {
        "STRANDLINE_ENGINE": "sail",
        "STRANDLINE_TRUST_THIS_MACHINE": "1",
        "STRANDLINE_LAKE": "lake",
        "STRANDLINE_PIPELINES": "pipelines",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert sum(kind == "text" for kind, _ in blocks) >= 4
    said = ""
    for kind, text in blocks:
        if kind == "text":
            missing = [line for line in text.splitlines() if line not in said]
            assert missing == [], said
            continue
        done = subprocess.run(
            ["bash", "-euc", text],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout
        assert done.returncode == 0, text + said + done.stderr
