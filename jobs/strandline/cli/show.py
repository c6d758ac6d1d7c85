"""The text that commands print: aligned tables, and errors as one message."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from strandline.cli import preview, words
from strandline.cli.console import TextConsole, dropping_unread, escape, table
from strandline.cli.json_document import json_place, write_document, write_failure
from strandline.errors import StrandlineError
from strandline.model.command import in_words
from strandline.model.intervals import days_named
from strandline.quality import progress
from strandline.visible import number_of

LINES = "\n"
"""The control characters that stay in a message of several lines."""
_WIDE = 160
"""The width in characters without a terminal, so that tables in a log are not truncated."""


def _console(*, stderr: bool) -> Console:
    console = TextConsole(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDE
    return console


out, err = _console(stderr=False), _console(stderr=True)


def document(content: Any, *, as_json: bool, human: Callable[[Any], None]) -> None:
    """Print a result, as a JSON document or as text; as text, too, if the document has a file."""
    with dropping_unread(sys.stdout):
        if as_json:
            write_document(content)
        if not as_json or json_place() is not None:
            human(content)


def failure(error: StrandlineError, *, as_json: bool) -> None:
    """Print an error: place, problem and way out."""
    if as_json:
        write_failure(error)
    with dropping_unread(sys.stderr):
        err.print(f"[bold red]error[/] {escape(str(error), keep=LINES)}")


def note(text: str) -> None:
    """Print a note of a command that has no result."""
    with dropping_unread(sys.stderr):
        err.print(f"note: {escape(text)}")


def outcome(run: Mapping[str, Any]) -> None:
    """Print a run: rows read, records by outcome, changes, and the audit's result."""
    verb, facts = run["status"].replace("_", " "), facts_table()
    out.print(f"[bold]{escape(run['pipeline'])}[/] {run['kind']} {run['run_id']}: [bold]{verb}[/]")
    if within := run["range"]:
        facts.add_row(*words.windows(within["start"], within["end"]))
    facts.add_row("data cut-off", words.cutoff(run["horizon"]))
    if run["status"] in {"repeated", "already_processed"}:
        out.print(facts)
        _notes(run["notes"])
        out.print(*words.finding_lines(run["findings"]), sep="", end="")
        return
    for one in run["rebuilt_first"]:
        within = " ".join(words.windows(one["range"]["start"], one["range"]["end"]))
        out.print(f"first, {within}: [bold]{one['status']}[/]")
        _changes(one)
        _notes([note for note in one["notes"] if note not in run["notes"]])
    _add_cost(facts, run)
    _add_records(facts, run)
    _add_slots(facts, run)
    out.print(facts)
    _changes(run)
    _notes(run["notes"])
    if run["status"] == "prepared":
        out.print(
            f"nothing is published yet: strandline runs publish {escape(run['pipeline'])} "
            f"{run['run_id']} publishes exactly this"
        )
    if not run["changed"]:
        out.print(_unchanged(run))


def _unchanged(run: Mapping[str, Any]) -> str:
    """A sentence about a run whose own results are those that are published."""
    if run["changed_first"]:
        runs = ", ".join(f"run {run_id}" for run_id in run["changed_first"])
        return f"{runs} first changed what is published; nothing else changes"
    previewed = (run["preview"] or {"quarantine": {}})["quarantine"]
    if any(run["quarantined"].values()) or any(previewed.values()):
        return "no result changes: only malformed rows of quarantine do"
    return "nothing changes: the published rows are those of this run"


def _changes(run: Mapping[str, Any]) -> None:
    """Print what a run changes, its preview, and the result of its audit."""
    for part in (preview.diff_table(run["diff"]), *preview.parts(run["preview"])):
        out.print(part)
    out.print(*words.failed_expectations(run["audit"]), sep="", end="")


def _notes(notes: Sequence[str]) -> None:
    for note in notes:
        out.print(f"note: {escape(note)}")


def status(found: Mapping[str, Any]) -> None:
    """Print the progress of a pipeline, and its findings."""
    colour = "green" if found["state"].startswith("OK") else "yellow"
    out.print(f"[bold]{escape(found['pipeline'])}[/]: [{colour}]{escape(found['state'])}[/]")
    out.print(*words.findings_of_status(found), sep="", end="")
    facts, last, records = facts_table(), found["last_run"], counted(found["records"])
    facts.add_row("lake", escape(found["lake"]))
    facts.add_row("processed up to", found["processed_up_to"] or "no midnight yet")
    slots = found["totals"]["slots"]
    facts.add_row("closed up to", progress.closed_up_to(found["closed_up_to"], slots, str))
    _add_last_run(facts, last)
    facts.add_row("watermark", escape(progress.watermark(found)))
    facts.add_row("in all", words.in_all(found["totals"]))
    facts.add_row("shown", words.shown_days(found["days"]))
    only_late = {"only late": found["slots_only_late"]} if found["slots_only_late"] else {}
    facts.add_row("slots", counted(found["slots"] | only_late))
    if found["overlapping"]:
        records += "; an accepted record counts in each of its windows, a late one in its newest"
    facts.add_row("records", records)
    facts.add_row(
        "quarantine", words.quarantined(counted(found["quarantine"]), found["quarantine_removed"])
    )
    for line in words.unfinished(found):
        facts.add_row(*line)
    _add_rules(facts, found)
    _add_violations(facts, last)
    out.print(facts)
    for name, ranges in found["lacking"].items():
        for within in ranges:
            out.print(
                f"note: {escape(name)} was added after the windows from {within['start']} to "
                f"{within['end']} were published, and is null there: strandline backfill "
                f"{escape(found['pipeline'])} --start {within['start']} --end {within['end']} "
                "fills it"
            )
    if not found["spec_is_published"]:
        upstream, keys = found["upstream"], words.edited(": ", found)
        or_other = f", or that of {escape(upstream['pipeline'])}," if upstream else ""
        out.print(
            f"note: the pipeline file{or_other} has changed since the last published run{keys}"
        )


def _add_last_run(facts: Table, run: Mapping[str, Any]) -> None:
    """Add the lines about the last run to the facts of a status."""
    facts.add_row(
        "last run", f"{run['run_id']} ({run['kind']}): {words.state(run)}, {run['ended']}"
    )
    start, end = (run[name] or "not known" for name in ("start", "end"))
    windows, cutoff = " ".join(words.windows(start, end)), words.cutoff(run["horizon"])
    facts.add_row("", f"{windows}, data cut-off {cutoff}{words.engine(run)}")


def _add_rules(facts: Table, found: Mapping[str, Any]) -> None:
    """Add the ranges by the rules of their publication, if there is more than one set of rules."""
    if len(found["rules"]) < 2:
        return
    for one in found["rules"]:
        of_range = f"{one['start']} to {one['end']}: {number_of(one['slots'], 'slot')}"
        by_other = words.edited(", edited since: ", one)
        facts.add_row(f"rules {one['spec_fingerprint'][:8]}", of_range + by_other)
    if across := found["sessions_across_rules"]:
        sessions = number_of(across, "session")
        facts.add_row("", f"{sessions} begun under one set of rules and ended under another")


def runs(lines: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each run; in a narrow terminal all columns but the ids are wrapped."""
    runs_table = table("kind", "status", "ended", "windows from", "to", "changes", first="run")
    runs_table.columns[0].min_width = max((len(line["run_id"]) for line in lines), default=0)
    for line in lines:
        start, end = line["start"], line["end"]
        windows = ("none", "") if start and start == end else (words.first_window(start), end)
        of_run = (line["run_id"], line["kind"], words.state(line), line["ended"])
        runs_table.add_row(*of_run, *windows, words.changes(line))
    out.print(runs_table)


def one_run(run: Mapping[str, Any]) -> None:
    """Print one run: its steps, books, audit and diff."""
    runs([run])
    if run["engine"]:
        out.print(f"computed{words.engine(run)}")
    steps = table("at", "", first="step")
    for step in run["steps"]:
        steps.add_row(step["step"], step["at"], escape(step["message"] or ""))
    out.print(steps)
    if run["overrides"]:
        out.print(f"of this run alone: {escape(in_words(run['overrides']))}")
    for name, sentence in (run["acknowledged"] or {}).items():
        out.print(f"acknowledged {escape(f'{name}: {sentence}')}")
    if run["accepted_loss"]:
        out.print(f"accepts missing rows: {escape(run['accepted_loss'])}")
    for name, key in (("because", "reason"), ("asked for by", "requested_by")):
        if run[key]:
            out.print(f"{name}: {escape(run[key])}")
    for book in run["books"] or []:
        balances = book["total"] == sum(book["parts"].values())
        if not (balances and book["name"].startswith("arrival day")):  # one for each day: too many
            out.print(f"{book['name']}: {book['total']:,} = {_parts_of(book)}")
    if run["violations"] is not None:
        out.print(f"out of order: {number_of(run['violations'], 'record')}")
    for result in run["audit"] or []:
        mark = "[green]met[/]   " if result["success"] else "[red]failed[/]"
        out.print(
            f"{mark} {result['severity']:<8} {escape(result['expectation'])}: "
            f"{escape(result['figures'])}"
        )
    if run["diff"]:
        out.print(preview.diff_table(run["diff"]))


def dropped(run: Mapping[str, Any]) -> None:
    """Print a dropped run, and the version to which each table that it had changed is restored."""
    out.print(f"[bold]{escape(run['pipeline'])}[/] run {escape(run['run_id'])}: dropped")
    for name, version in run["versions"].items():
        out.print(f"{name}: restored to version {version}")


def written(report: Mapping[str, Any]) -> None:
    """Print the file of a report and its days; --json has the folder of the Data Docs, too."""
    out.print(f"report: {escape(report['report'])}")
    if report["notice"]:
        out.print(f"note: {escape(report['notice'])}")
    out.print(f"shown: {words.shown_days(report['days'])}")
    out.print(f"in all: {words.in_all(report['totals'])}")


def facts_table() -> Table:
    """A table of names and values without a header."""
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    return facts


def _add_cost(facts: Table, run: Mapping[str, Any]) -> None:
    """Add what a run reads, and the time of similar runs; a staged run reads nothing."""
    if read := run["read"]:
        facts.add_row(
            "read",
            f"{number_of(read['rows'], 'row')}, {read['bytes'] / 1e6:,.1f} MB, "
            f"{number_of(read['files'], 'file')}, {number_of(read['arrival_days'], 'arrival day')}",
        )
    if before := run["took_before"]:
        facts.add_row("took before", preview.took(before))


def _add_records(facts: Table, run: Mapping[str, Any]) -> None:
    """Add the arrivals that a run evaluates again, and the number of its records by outcome."""
    if run["owed"]:
        facts.add_row("to recompute", days_named(run["owed"]))
    if run["judged_from"]:
        facts.add_row("evaluated again", f"all arrivals from {run['judged_from']} on")
    for book in run["books"]:
        if not book["name"].startswith("arrival day"):
            facts.add_row(book["name"], f"{number_of(book['total'], 'record')} = {_parts_of(book)}")
    if run["read"]:
        facts.add_row("malformed", counted(run["malformed"]))
    _add_violations(facts, run)


def _add_violations(facts: Table, run: Mapping[str, Any]) -> None:
    """Add the records out of order, for a watermark strategy that assumes ascending times."""
    if run["violations"] is not None:
        facts.add_row("out of order", number_of(run["violations"], "record"))


def _add_slots(facts: Table, run: Mapping[str, Any]) -> None:
    """Add the number of slots by state, and of gaps."""
    if run["slots"]:
        facts.add_row("slots", f"{counted(run['slots'])}; gaps {run['gaps']:,}")
    elif run["gaps"]:  # of gaps alone, or published later: the states are not in the ledger
        facts.add_row("gaps", f"{run['gaps']:,}")


def _parts_of(book: Mapping[str, Any]) -> str:
    """The parts of a book as a sum: `1,204 on_time + 3 late`."""
    return " + ".join(f"{count:,} {name}" for name, count in book["parts"].items())


def counted(counts: Mapping[str, int]) -> str:
    """Counts in a line: `1,832 closed, 2 fired`."""
    return ", ".join(f"{count:,} {escape(str(name))}" for name, count in counts.items()) or "none"
