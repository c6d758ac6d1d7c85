"""What the steps of a ledger say: what is published, taken back, owed or unfinished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from strandline.lake.entry import Entry
from strandline.model.intervals import EVERYTHING, LEAST_INSTANT_MS, TimeRange, midnight_before

_TOGETHER = ("published", "maintained", "erased")
"""Steps that are written, under the lock, when every table is whole."""
_DATELESS = "arrival day unknown"
"""How the book of the rows without an arrival day begins."""
_ENDS = ("published", "dropped")
"""What ends a publish that has begun."""


def published_into(entries: list[Entry], within: TimeRange) -> list[Entry]:
    """The published steps whose range shares an instant with one."""
    return [
        entry
        for entry in entries
        if entry.step == "published" and entry.range is not None and entry.range.overlaps(within)
    ]


def taken_back(entries: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    """The published steps that a revert has taken back, each with the published one of that.

    A revert takes back the run that it names; one of an old ledger, which names none, the last one
    that has published into just its range. That can be a revert, too: then what it had taken back
    stands again.
    """
    published = [e for e in entries if e.step == "published" and e.range is not None]
    pairs, undone = [], set()
    for number in reversed(range(len(published))):
        back = published[number]
        if back.kind != "revert" or number in undone:
            continue
        before = (n for n in reversed(range(number)) if _is_taken_back_by(back, published[n]))
        if (done := next(before, None)) is not None:
            undone.add(done)
            pairs.append((published[done], back))
    return pairs[::-1]


def _is_taken_back_by(back: Entry, run: Entry) -> bool:
    return run.run_id == back.reverts if back.reverts is not None else run.range == back.range


def standing(entries: Sequence[Entry]) -> list[Entry]:
    """The published steps of runs that no revert has taken back; reverts are none of them."""
    gone = {done.position for done, _ in taken_back(entries)}
    published = (e for e in entries if e.step == "published" and e.kind != "revert")
    return [entry for entry in published if entry.position not in gone]


def of_these_tables(entries: list[Entry], *, anew: bool = False) -> list[Entry]:
    """The steps of a ledger but for what was published into tables that were created anew since.

    Args:
        entries: the ledger.
        anew: whether they are about to be: then nothing is published.
    """
    again = [entry.position for entry in entries if entry.step == "published" and entry.recreated]
    since = max(again, default=0)
    return [e for e in entries if e.step != "published" or (e.position >= since and not anew)]


def published_since(entries: list[Entry], run: Entry) -> list[Entry]:
    """The published steps since a run's base that touch slots which the run touches too.

    A run that creates the tables anew touches all. And every erasure counts: what the run has read
    may hold the rows that had to leave.
    """
    return [
        entry
        for entry in entries
        if entry.position > run.base
        and entry.run_id != run.run_id
        and (entry.step == "erased" or _meets(entry, run))
    ]


def erased_since(entries: list[Entry], base: int) -> Entry | None:
    """The last erasure since a position of the ledger; None: there is none."""
    return next((e for e in reversed(entries) if e.step == "erased" and e.position > base), None)


def _meets(published: Entry, run: Entry) -> bool:
    """Whether a step is a published one, and touches slots that a run touches too."""
    if published.step != "published":
        return False
    if run.recreated or published.recreated:
        return True
    one, other = published.touched, run.touched
    return one is not None and other is not None and one.overlaps(other)


def together(entries: list[Entry], run_id: str | None = None) -> Entry | None:
    """The last step that says which versions of all tables belong together; `run_id`: of a run."""
    return next(
        (
            entry
            for entry in reversed(entries)
            if entry.step in _TOGETHER
            and (entry.step == "published" or entry.versions is not None)
            and run_id in {None, entry.run_id}
        ),
        None,
    )


def owed_days(entries: list[Entry]) -> list[date]:
    """The arrival days that are still to be judged again.

    A run settles the days that it knew of: those noted before the ledger's position that it is
    based on, and those that it has noted itself.
    """
    noted: dict[date, Entry] = {}
    for entry in entries:
        if entry.step == "owed":
            noted |= dict.fromkeys(entry.owed or (), entry)
        if entry.step == "published":
            for day in entry.settled or ():
                note = noted.get(day)
                if note and (note.position <= entry.base or note.run_id == entry.run_id):
                    del noted[day]
    return sorted(noted)


def without_taken_back(entries: Sequence[Entry]) -> list[Entry]:
    """The steps but for the published ones that a revert has taken back, and those of the reverts.

    Both together have changed nothing.
    """
    both = {entry.position for pair in taken_back(entries) for entry in pair}
    return [e for e in entries if not (e.step == "published" and e.position in both)]


def largest_horizon(entries: list[Entry], within: TimeRange) -> int | None:
    """The largest horizon published into any part of a range, by runs that nobody took back."""
    horizons = [entry.horizon_ms for entry in published_into(standing(entries), within)]
    return max((ms for ms in horizons if ms is not None), default=None)


def knows_more(entries: list[Entry], horizon_ms: int) -> bool:
    """Whether anything is published as of a later horizon."""
    largest_ms = largest_horizon(entries, EVERYTHING)
    return largest_ms is not None and largest_ms > horizon_ms


def frontier(entries: list[Entry]) -> int | None:
    """The midnight up to which everything that Flink would have said is published and stands."""
    published = [entry for entry in entries if entry.step == "published"]
    pairs = taken_back(published)
    if not pairs:
        return published[-1].frontier_ms if published else None
    first = min(done.position for done, _ in pairs)
    reached = next((e.frontier_ms for e in reversed(published) if e.position < first), None)
    undone = {entry.position for pair in pairs for entry in pair if pair[0].kind == "revert"}
    done_by = {back.position: done for done, back in pairs}
    before: dict[int, int | None] = {}
    for entry in published:
        if entry.position < first or entry.position in undone:
            continue
        before[entry.position] = reached
        if entry.kind != "revert":
            reached = earlier_of(_moved_by(entry, reached, entry.completes_ms), entry.frontier_ms)
        elif entry.position in done_by:
            reached = earlier_of(reached, before[done_by[entry.position].position])
        else:
            reached = earlier_of(reached, entry.frontier_ms)
    return reached


def frontier_within(entries: list[Entry], known_until_ms: int | None) -> int | None:
    """The frontier; no further than to where the source of the pipeline is known (None: anywhere).

    A pipeline that reads results of another one stands for no more than that one does.
    """
    return no_further_than(known_until_ms, frontier(entries))


def no_further_than(known_until_ms: int | None, reached: int | None) -> int | None:
    """A frontier; at most the midnight up to which the source is known (None: it may be any)."""
    if known_until_ms is None:
        return reached
    return earlier_of(reached, None if known_until_ms <= LEAST_INSTANT_MS else known_until_ms)


def earlier_of(one: int | None, other: int | None) -> int | None:
    """The earlier of two frontiers; None: nothing is published."""
    return None if one is None or other is None else min(one, other)


def frontier_after(entries: list[Entry], run: Entry, completes_ms: int | None) -> int | None:
    """The frontier once a run is published.

    Args:
        entries: the ledger before it is.
        run: the run; one by hand that has changed something as of an earlier horizon takes
            knowledge back, and the frontier with it, so that the next scheduled run heals that;
            one that reverts another brings back the frontier from before that one, if what has
            published since stands no further.
        completes_ms: the midnight up to which the run itself publishes everything.
    """
    if run.kind == "revert":
        position = entries[-1].position + 1 if entries else 1
        return frontier([*entries, replace(run, step="published", position=position)])
    return _moved_by(run, frontier(entries), completes_ms)


def _moved_by(run: Entry, reached: int | None, completes_ms: int | None) -> int | None:
    """The frontier after a run that publishes everything up to a midnight; None: of nothing."""
    if reached is None or completes_ms is None:
        after = completes_ms if reached is None else reached
    else:
        after = max(reached, completes_ms)
    changed = any(any(counts.values()) for counts in (run.diff or {}).values())
    if after is None or run.horizon_ms is None or run.kind == "advance" or not changed:
        return after
    return min(after, midnight_before(run.horizon_ms))


def clock_start(entries: list[Entry]) -> int | None:
    """When the job's clock started, as the first observation has fixed it."""
    return next((e.clock_start_ms for e in entries if e.clock_start_ms is not None), None)


def unfinished_publish(entries: list[Entry]) -> Entry | None:
    """A publish that began, and neither ended nor was dropped: who takes the lock next finishes it.

    A failure on the way is no end: some tables may be written, and others not.
    """
    last: Entry | None = None
    for entry in entries:
        if entry.step == "publishing":
            last = entry
        elif last is not None and entry.run_id == last.run_id and entry.step in _ENDS:
            last = None
    return last


def told_of_unfinished(publish: Entry) -> str:
    """What people are told where a publish is unfinished."""
    return (
        f"run {publish.run_id} has begun to publish and has not ended: everything is shown as it "
        "was before; the next run finishes what has died"
    )


def begun_drop(entries: list[Entry], begun: Entry) -> Entry | None:
    """The step that began to drop a publish: from then on it is taken back, and not finished."""
    return next(
        (e for e in reversed(entries) if e.run_id == begun.run_id and e.step == "dropping"), None
    )


def rows_without_day(entries: Sequence[Entry], step: str) -> int:
    """How many rows without an arrival day the last step of a kind has read, by its books."""
    of_kind = (e for e in reversed(entries) if e.step == step and e.books is not None)
    books: Sequence[Mapping[str, Any]] = next((entry.books or [] for entry in of_kind), [])
    return sum(book["total"] for book in books if book["name"].startswith(_DATELESS))
