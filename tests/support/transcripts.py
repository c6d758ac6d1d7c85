"""Transcripts: worked examples told line by line, read as scenarios and the answers due to them.

A file of `tests/transcripts` is a list of transcripts on one topic. Each has a `title`, the `rule`
that it shows with Flink's class, the pipeline's `window`, `watermark`, `allowed_lateness` (none),
`trigger` and `evictor` (Flink's own and none), `channels` ([a]), then a `story` from top to bottom,
and what is left `open` at its end.

| a line of a story | what it says |
|---|---|
| `{id: 3, at: 20, ts: 7, channel: a, key: k}` | record 3 arrives at 20 with event time 7 |
| `tick: 200` | the clock has come to this tick; ticks at which nothing happens may be left out |
| `end` | the input ends, at the last instant that was told; without it the story just stops |
| `watermark: 9` | the combined watermark rises to 9; `max` is the end of time |
| `fires: {window: [0, 10], holds: [1, 2], key: k}` | the window [0, 10) fires with these records |
| `late`, `no_window` | what became of the record just told; otherwise a window has taken it |
| `idle`, `active` | the combined input has gone idle, or is active again |

A record without `at` arrives at the millisecond of its id; without `channel` on a, without `key`
for k. It may have a `marker` (punctuated), the watermark that it `offers` (`candidate: offers`), or
a `gap_ms`. Its `value` is what it offers, else its id. An instant is in milliseconds, or a time of
day such as "9:02". What is `open` is told as what fires is; `fired: true` there: the watermark has
passed the end, the state is still kept.

A story of two sources has a `join`, its `watermark` is that of both sides, and a record tells its
`input`. `pair: [1, 2]`: the left record 1 and the right record 2 belong together. Of an interval
join `kept` tells what still waits for partners, in place of `open`.

With `then: {window: …, allowed_lateness: …, key: all}` second windows take in what the first ones
fire (`key`: that of the first, or one for all). A story counts these results from 1 as they come.
`then: {window: [0, 30], of: [1, 2]}`: the second window fires with these results; `then_late: 3`:
result 3 came too late for it. `then_open` tells what is left open of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from strandline.conformance.answer import (
    Answer,
    AnyAnswer,
    FiringRow,
    LateRow,
    OpenRow,
    PairRow,
    PairsAnswer,
    StatusRow,
    ThenAnswer,
    ThenFiring,
    ThenLate,
    ThenOpen,
    WatermarkRow,
    WindowRow,
)
from strandline.conformance.pipelines import AGGREGATES, PIPELINE
from strandline.conformance.scenario import ChainedScenario, Scenario
from strandline.errors import InputError
from strandline.model.intervals import datetime_of
from strandline.model.lateness import MAX_WATERMARK, MIN_WATERMARK
from strandline.reference.records import Record
from strandline.spec import parse_any
from strandline.spec.chained import ChainedSpec
from strandline.spec.runnable import AnySpec

FOLDER = Path(__file__).parents[1] / "transcripts"
START_MS = 0
_RULES = {"window", "watermark", "allowed_lateness", "trigger", "evictor", "channels", "join"}
_FIELDS = {"title", "rule", "story", "open", "kept", "then", "then_open"} | _RULES
_RECORD_FIELDS = {"id", "at", "ts", "channel", "key", "marker", "offers", "gap_ms", "input"}
_OFFERS = "case when marker then timestamp_millis(value) end"
"""`offers` over the columns that every scenario has."""


@dataclass(frozen=True)
class ToldScenario(Scenario):
    """A scenario whose clock runs on to the last instant that its story tells."""

    until_ms: int

    @property
    def horizon_ms(self) -> int:
        """Just after the last instant that is told."""
        return self.until_ms + 1


@dataclass(frozen=True)
class ToldChain(ToldScenario, ChainedScenario):
    """Such a scenario whose results go into second windows."""


@dataclass(frozen=True)
class Transcript:
    """A worked example.

    Attributes:
        title: what it shows, as a sentence.
        rule: the rule behind it, and Flink's class.
        scenario: what an engine is given.
        expected: what it must answer, worked out by hand.
    """

    title: str
    rule: str
    scenario: ToldScenario
    expected: AnyAnswer


def read_transcripts(folder: Path = FOLDER) -> list[Transcript]:
    """All transcripts of a folder, by file and place."""
    return [
        read_transcript(content)
        for path in sorted(folder.glob("*.yaml"))
        for content in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]


def read_transcript(content: dict[str, Any]) -> Transcript:
    """One transcript.

    Raises:
        InputError: a line of it cannot be understood.
    """
    title = str(content.get("title"))
    _refuse_strangers(title, content, _FIELDS)
    story = _Story(title, join=next(iter(content.get("join", {})), ""))
    for line in content["story"]:
        story.tell(line)
    told_of: dict[str, Any] = {
        "name": title,
        "spec": _pipeline(content),
        "records": tuple(story.records.values()),
        "start_ms": START_MS,
        "end_of_input": story.ended,
        "until_ms": story.now_ms,
    }
    if "then" in content:
        scenario: ToldScenario = ToldChain(**told_of, then=_second(content))
    else:
        scenario = ToldScenario(**told_of)
    told = story.kept(content["kept"]) if "kept" in content else story.answer(content["open"])
    if isinstance(told, Answer) and "then" in content:
        told = told.model_copy(update={"then": story.then(content["then_open"])})
    return Transcript(title, content["rule"], scenario, told)


def _pipeline(content: dict[str, Any]) -> AnySpec:
    """The pipeline of a transcript, over the columns of a scenario."""
    watermark = dict(content["watermark"])
    if watermark.get("candidate") == "offers":
        watermark["candidate"] = _OFFERS
    source = {
        "table": "scenario",
        "arrival_time": "timestamp_millis(arrival_ms)",
        "event_time": "timestamp_millis(ts_ms)",
        "channel": "channel",
        "channels": content.get("channels", ["a"]),
        "key": ["key"],
        "sequence": "id",
        "start": datetime_of(START_MS),
    }
    pipeline: dict[str, Any] = {"pipeline": PIPELINE}
    if "join" in content:
        sides = dict.fromkeys(("left", "right"), source | {"watermark": watermark})
        pipeline |= {"sources": sides, "join": content["join"]}
    else:
        pipeline |= {"source": source, "watermark": watermark}
    if "window" in content:
        pipeline |= {
            "window": content["window"],
            "allowed_lateness": content.get("allowed_lateness", "0ms"),
            "aggregates": AGGREGATES,
            "firings": True,
        }
    for name in ("trigger", "evictor"):
        if name in content:
            pipeline[name] = content[name]
    return parse_any(pipeline, origin=content["title"])


def _second(content: dict[str, Any]) -> ChainedSpec:
    """The pipeline of the second windows of a transcript."""
    rules = {"key": "same", "allowed_lateness": "0ms", **content["then"]}
    key = {"same": ["key"], "all": []}[rules.pop("key")]
    source = {"pipeline": PIPELINE, "table": "firings", "key": key}
    told = {"aggregates": AGGREGATES, "firings": True, **rules}
    parsed = parse_any({"pipeline": "then", "source": source, **told}, origin=content["title"])
    return cast("ChainedSpec", parsed)


@dataclass
class _Story:
    """What has been told so far: the records, and what they and the clock have caused."""

    title: str
    join: str = ""
    records: dict[int, Record] = field(default_factory=dict)
    now_ms: int = START_MS
    ended: bool = False
    _cause: str = ""
    _watermark: int = MIN_WATERMARK
    _watermarks: list[WatermarkRow] = field(default_factory=list)
    _status: list[StatusRow] = field(default_factory=list)
    _firings: list[FiringRow] = field(default_factory=list)
    _late: list[LateRow] = field(default_factory=list)
    _no_window: list[int] = field(default_factory=list)
    _pairs: list[PairRow] = field(default_factory=list)
    _second: list[ThenFiring] = field(default_factory=list)
    _late_results: list[ThenLate] = field(default_factory=list)

    def tell(self, line: Any) -> None:
        """Take in the next line."""
        if self.ended and line not in ("idle", "active") and not _is_consequence(line):
            raise InputError(self.title, f"{line} comes after the end", "tell it before")
        match line:
            case {"id": _}:
                self._record(line)
            case {"tick": at}:
                self._move_on(_instant(at), "tick")
            case "end":
                self.ended = True
                self._move_on(self.now_ms, "end")
            case _ if not self._cause:
                raise InputError(self.title, f"nothing has caused {line}", "tell a record first")
            case {"watermark": watermark}:
                self._watermark = _instant(watermark)
                self._watermarks.append(WatermarkRow(**self._when(), watermark=self._watermark))
            case {"fires": pane}:
                self._fires(pane)
            case {"then": pane}:
                told = self._of_results(pane) | self._fired()
                self._second.append(ThenFiring(**told))
            case {"then_late": number}:
                self._late_results.append(ThenLate(seq=number, watermark=self._watermark))
            case {"pair": [left, right]} if self._cause == "record":
                self._pair(left, right)
            case "idle" | "active":
                self._status.append(StatusRow(**self._when(), status=line))
            case "late" if self._cause == "record":
                side = self.records[self._last_id].input or None
                late = LateRow(id=self._last_id, watermark=self._watermark, input=side)
                self._late.append(late)
            case "no_window" if self._cause == "record":
                self._no_window.append(self._last_id)
            case _:
                raise InputError(self.title, f"{line} is no line of a story here", "see the table")

    def answer(self, still_open: list[dict[str, Any]]) -> Answer:
        """All that was told, and what is left open."""
        final = {(row.key, row.start, row.end): row for row in self._firings}
        return Answer(
            firings=self._firings,
            late=self._late,
            no_window=self._no_window,
            final=[WindowRow(**row.model_dump()) for row in final.values()],
            open_at_end=[
                OpenRow(**self._pane(pane, "fired"), end_passed=pane.get("fired", False))
                for pane in still_open
            ],
            final_watermark=self._watermark,
            watermarks=self._watermarks,
            valve_status=self._status,
        )

    def then(self, still_open: list[dict[str, Any]]) -> ThenAnswer:
        """The same of second windows."""
        held = [
            ThenOpen(**self._of_results(pane, "fired"), end_passed=pane.get("fired", False))
            for pane in still_open
        ]
        return ThenAnswer(firings=self._second, late=self._late_results, open_at_end=held)

    def kept(self, by_side: dict[str, list[int]]) -> PairsAnswer:
        """The same of an interval join: all that was told, and what still waits for partners."""
        return PairsAnswer(
            pairs=self._pairs,
            late=self._late,
            buffered=by_side,
            final_watermark=self._watermark,
            watermarks=self._watermarks,
        )

    def _pair(self, left: int, right: int) -> None:
        times = [self.records[number].ts_ms for number in (left, right)]
        found = PairRow(
            left=left,
            right=right,
            ts=max(times),
            watermark=self._watermark,
            arrival_ms=self.now_ms,
            after_record_id=self._last_id,
        )
        self._pairs.append(found)

    def _record(self, line: dict[str, Any]) -> None:
        _refuse_strangers(self.title, line, _RECORD_FIELDS)
        number, offers = line["id"], line.get("offers")
        if number != self._last_id + 1:
            raise InputError(self.title, f"record {number} is out of order", "count from 1")
        at_ms = _instant(line.get("at", number))
        self._move_on(at_ms, "record")
        row = {
            "id": number,
            "arrival_ms": at_ms,
            "ts_ms": _instant(line["ts"]),
            "channel": line.get("channel", "a"),
            "key": line.get("key", "k"),
            "value": number if offers is None else _instant(offers),
            "marker": line.get("marker", offers is not None),
            "gap_ms": line.get("gap_ms"),
        } | ({"input": line["input"]} if self.join else {})
        self.records[number] = Record(
            arrival_ms=at_ms,
            ts_ms=row["ts_ms"],
            record_id=str(number),
            channel=row["channel"],
            key=(row["key"],),
            sequence=number,
            marker=row["marker"],
            candidate_ms=None if offers is None else row["value"],
            gap_ms=row["gap_ms"],
            trigger_value=row["value"],
            evictor_value=row["value"],
            input=line.get("input", ""),
            payload=row,
        )

    def _move_on(self, at_ms: int, cause: str) -> None:
        if at_ms < self.now_ms:
            raise InputError(self.title, f"{at_ms} comes after {self.now_ms}", "tell it in order")
        self.now_ms, self._cause = at_ms, cause

    def _fires(self, pane: dict[str, Any]) -> None:
        number = len(self._firings) + 1
        self._firings.append(FiringRow(**self._pane(pane), **self._fired(), seq=number))

    def _fired(self) -> dict[str, Any]:
        """When something fires, by which watermark."""
        when = self._when()
        when["arrival_ms"] = when.pop("at_arrival_ms")
        return when | {"watermark": self._watermark}

    def _of_results(self, pane: dict[str, Any], *further: str) -> dict[str, Any]:
        """A second window by the numbers of the results that it holds."""
        _refuse_strangers(self.title, pane, {"window", "of", "key", *further})
        unknown = [number for number in pane["of"] if not 1 <= number <= len(self._firings)]
        if unknown:
            raise InputError(self.title, f"no result {unknown} so far", "take in what has fired")
        results = [self._firings[number - 1] for number in pane["of"]]
        start, end = pane["window"]
        return {
            "key": pane.get("key", "k"),
            "start": _instant(start),
            "end": _instant(end),
            "count": len(results),
            "sum": sum(result.sum or 0 for result in results),
            "seqs": pane["of"],
        }

    def _pane(self, pane: dict[str, Any], *further: str) -> dict[str, Any]:
        _refuse_strangers(self.title, pane, {"window", "holds", "key", *further})
        unknown = [number for number in pane["holds"] if number not in self.records]
        if unknown:
            raise InputError(self.title, f"no record {unknown} so far", "hold what has come")
        start, end = pane["window"]
        told = {
            "key": pane.get("key", "k"),
            "start": _instant(start),
            "end": _instant(end),
            "count": len(pane["holds"]),
            "sum": sum(self.records[number].payload["value"] for number in pane["holds"]),
            "ids": sorted(pane["holds"]),
        }
        if not self.join or further:  # what is open of a join holds records, whatever it tells
            return told
        sides: dict[str, list[int]] = {
            side: [n for n in told["ids"] if self.records[n].input == side]
            for side in ("left", "right")
        }
        if self.join == "window":
            told |= {"count": len(sides["left"]) * len(sides["right"]), "sum": None}
        return told | sides

    def _when(self) -> dict[str, Any]:
        after = self._last_id if self._cause == "record" else None
        return {"at_arrival_ms": self.now_ms, "after_record_id": after, "cause": self._cause}

    @property
    def _last_id(self) -> int:
        return max(self.records, default=0)


def _is_consequence(line: Any) -> bool:
    caused = {"watermark", "fires", "then", "then_late"}  # no pair: records do
    return isinstance(line, dict) and line.keys() <= caused


def _instant(value: Any) -> int:
    """Milliseconds of a whole number, of `max`, or of a time of day: h:mm, h:mm:ss, h:mm:ss.fff."""
    if isinstance(value, int):
        return value
    if value == "max":
        return MAX_WATERMARK
    hours, minutes, *seconds = str(value).split(":")
    whole, _, fraction = (seconds[0] if seconds else "0").partition(".")
    past_the_hour = int(minutes) * 60_000 + int(whole) * 1_000 + int(f"{fraction:0<3}")
    return int(hours) * 3_600_000 + past_the_hour


def _refuse_strangers(title: str, part: dict[str, Any], known: set[str]) -> None:
    strangers = sorted(part.keys() - known)
    if strangers:
        raise InputError(title, f"{strangers} in {part}", f"write {sorted(known)}")
