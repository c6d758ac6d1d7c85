"""The house: what a newcomer can rely on when opening a file."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
MOST_LINES = 300


@cache
def parsed(file: Path) -> ast.Module:
    """A file's code, which several tests read."""
    return ast.parse(file.read_text("utf-8"))


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
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Attribute) and node.attr in OF_A_JVM:
                found.append(f"{file.relative_to(PROJECT)}:{node.lineno}: .{node.attr}")
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module] if isinstance(node, ast.ImportFrom) else []
                names += [alias.name for alias in node.names]
                if any((name or "").split(".")[0] in {"py4j", "delta"} for name in names):
                    found.append(f"{file.relative_to(PROJECT)}:{node.lineno}: an import")
    assert found == []


PLAIN_WORDS = {
    "told": "rows, result, emitted",
    "tells": "has, gives, identifies",
    "met": "watermark at arrival",
    "rise": "watermark advance",
    "rises": "advances",
    "risen": "advanced",
    "fate": "outcome",
    "outlook": "planned run",
    "owed": "to recompute",
    "walk": "replay",
    "walks": "replays",
    "walked": "replayed",
    "anew": "again",
    "world": "landing status",
    "parted": "divided, partitioned",
    "moment": "at_ms, instant, origin",
    "moments": "instants, timestamps",
    "judge": "check, evaluate",
    "judged": "checked, evaluated",
    "judges": "checks, evaluates",
    "heard": "active",
    "followed": "next, steps",
    "standing": "in force, published",
    "stood": "was, published",
    "gone": "removed, missing",
    "hang": "are connected, extend over",
    "hangs": "is connected, extends over",
}
"""Words of ours that nobody else has, and the words of Flink, Spark or Airflow for them."""
KEPT_WORDS = {
    "owed": "a step and a column of the ledger, and a key of --json, that lakes and readers have",
    "walk": "a method of sqlglot's trees",
    "channels_heard": "a column of `completeness`",
}
"""Names that stay all the same, and why."""


def test_whether_a_window_is_late_or_has_fired_is_asked_under_one_name_in_every_world():
    """Flink's names, in integers and in columns; no other module compares instants for it."""
    engine = PROJECT / "jobs" / "strandline" / "engine"
    columns = engine / "records" / "arithmetic.py"
    integers = PROJECT / "jobs" / "strandline" / "model" / "lateness.py"
    for file in (integers, columns):
        defined = {n.name for n in parsed(file).body if hasattr(n, "name")}
        assert {"cleanup_time", "is_window_fired", "is_window_late"} <= defined
    by_hand = re.compile(r"INSTANT\) (<|>=) F\.col\((?!c\.SURE_BEFORE)")
    found = {file for file in engine.rglob("*.py") if by_hand.search(file.read_text("utf-8"))}
    assert found == {columns}


def _words_of(tree: ast.AST):
    """The names and docstrings of a module, each with its line."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield line, name
            case ast.keyword(arg=str(name)):
                yield line, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield line, name
                yield line, ast.get_docstring(node) or ""
            case ast.Module():
                yield line, ast.get_docstring(node) or ""


def test_names_and_docstrings_are_in_the_words_of_flink_spark_and_airflow():
    found = []
    for file in [*PROJECT.glob("jobs/**/*.py"), *PROJECT.glob("plugins/**/*.py")]:
        for line, text in _words_of(parsed(file)):
            if text in KEPT_WORDS:
                continue
            without_names = re.sub("`(" + "|".join(KEPT_WORDS) + ")`", "", text)
            words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", without_names)
            found += [
                f"{file.relative_to(PROJECT)}:{line}: {word}: {PLAIN_WORDS[word.lower()]}"
                for word in words
                if word.lower() in PLAIN_WORDS and word.lower() not in KEPT_WORDS
            ]
    assert found == []
    assert sum(1 for _ in _words_of(ast.parse("def told(met): '''It tells.'''"))) == 4


OF_FLINK = {"GlobalWindows.EndOfStreamTrigger"}
"""Members of Flink's classes that have the name of one of ours."""


def test_docstrings_name_members_that_exist():
    files = [*PROJECT.glob("jobs/**/*.py"), *PROJECT.glob("plugins/**/*.py")]
    trees = {file: parsed(file) for file in files}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    members = _members_of([node for node in nodes if isinstance(node, ast.ClassDef)])
    classes = {member.split(".")[0] for member in members}
    found = [
        f"{file.relative_to(PROJECT)}:{line}: {name}"
        for file, tree in trees.items()
        for line, text in _words_of(tree)
        for name in re.findall(r"`([A-Z]\w+\.\w+)`", text)
        if name.split(".")[0] in classes and name not in members | OF_FLINK
    ]
    assert found == []


def _members_of(classes: list[ast.ClassDef]) -> set[str]:
    """`Class.member` of all classes; classes of one name, and bases, are taken as one."""
    own: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for node in classes:
        of_class = own.setdefault(node.name, set())
        bases.setdefault(node.name, set()).update(b.id for b in node.bases if hasattr(b, "id"))
        for one in node.body:
            targets = [*getattr(one, "targets", ()), getattr(one, "target", None)]
            names = [getattr(one, "name", None), *(getattr(t, "id", None) for t in targets)]
            of_class.update(name for name in names if name is not None)

    def with_bases(name: str) -> set[str]:
        others = bases.get(name, set()) - {name}
        return own.get(name, set()).union(*map(with_bases, others))

    return {f"{name}.{member}" for name in own for member in with_bases(name)}


MOST_NAMES = 15
"""So many names, arguments counted, one can hold in mind at once."""
MOST_DENSE = 8
"""So many of a thousand functions may have more."""


def test_functions_have_few_names():
    dense, functions = [], 0
    for file in [*PROJECT.glob("jobs/**/*.py"), *PROJECT.glob("plugins/**/*.py")]:
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.FunctionDef):
                functions += 1
                if len(_names_in(node)) > MOST_NAMES:
                    dense.append(f"{file.relative_to(PROJECT)}: {node.name}")
    assert len(dense) <= MOST_DENSE * functions / 1000, dense


def _names_in(function: ast.FunctionDef) -> set[str]:
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    return (stored | arguments) - {"self", "cls"}
