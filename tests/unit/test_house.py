"""The house: what a newcomer can rely on when opening a file."""

from __future__ import annotations

import ast
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
MOST_LINES = 300


def test_no_file_is_longer_than_one_can_hold_in_mind():
    files = [*PROJECT.glob("jobs/**/*.py"), *PROJECT.glob("plugins/**/*.py")]
    lines = {str(f.relative_to(PROJECT)): len(f.read_text("utf-8").splitlines()) for f in files}
    assert len(files) > 100
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_the_code_map_names_files_that_exist():
    text = (PROJECT / "docs" / "code-map.md").read_text("utf-8")
    house = PROJECT / "jobs" / "strandline"
    named = [word for word in text.split("`") if word.endswith(".py") and " " not in word]
    folders = {path.parent for path in house.rglob("*.py")}
    assert len(named) > 20
    unknown = [n for n in named if not any((folder / n).is_file() for folder in folders)]
    assert unknown == []


OF_A_JVM = {"_jvm", "_jdf", "_jsc", "_jc", "sparkContext", "_sc", "rdd", "localCheckpoint"}
"""Attributes that only Apache Spark in this process has."""
THE_ROOM = PROJECT / "jobs" / "strandline" / "lake" / "sessions"


def test_only_the_room_of_the_engines_goes_beyond_the_public_api():
    found = []
    for file in [*PROJECT.glob("jobs/**/*.py"), *PROJECT.glob("plugins/**/*.py")]:
        if THE_ROOM in file.parents:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in OF_A_JVM:
                found.append(f"{file.relative_to(PROJECT)}:{node.lineno}: .{node.attr}")
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module] if isinstance(node, ast.ImportFrom) else []
                names += [alias.name for alias in node.names]
                if any((name or "").split(".")[0] in {"py4j", "delta"} for name in names):
                    found.append(f"{file.relative_to(PROJECT)}:{node.lineno}: an import")
    assert found == []
