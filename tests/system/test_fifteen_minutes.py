"""The page 'Your own table in fifteen minutes', followed literally."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "fifteen-minutes.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
END = "-- end of a block --"


@pytest.mark.system
def test_the_page_is_right_to_the_letter(tmp_path):
    """One shell that has nothing but what the page says, and the trust in this machine."""
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert {kind for kind, _ in blocks} == {"bash", "text"}
    assert sum(kind == "text" for kind, _ in blocks) >= 4
    commands = [text for kind, text in blocks if kind == "bash"]
    ours = {name: value for name, value in os.environ.items() if "STRANDLINE" not in name}
    done = subprocess.run(
        ["bash", "-euc", "".join(f"{text}echo '{END}'\n" for text in commands)],
        cwd=tmp_path,
        env=ours
        | {
            "STRANDLINE_TRUST_THIS_MACHINE": "1",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " on sail " in done.stdout, "the page says that it needs no Java"
    said = iter(done.stdout.split(END))
    latest = ""
    for kind, text in blocks:
        if kind == "bash":
            latest = next(said)
        else:
            missing = [line for line in text.splitlines() if line not in latest]
            assert missing == [], latest
