"""An answer to a scenario, in the words of the goldens: what Flink gave, or an engine gives."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Cause = Literal["tick", "record", "end"]


class _Row(BaseModel):
    """A row of an answer; further fields of a golden are not compared."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class WatermarkRow(_Row):
    """An advance of the combined watermark, or of the watermark of one of two inputs."""

    at_arrival_ms: int
    after_record_id: int | None
    cause: Cause
    watermark: int
    input: str | None = None


class StatusRow(_Row):
    """A change of the combined input, or of one of two, between idle and active."""

    at_arrival_ms: int
    after_record_id: int | None
    cause: Cause
    status: str
    input: str | None = None


class WindowRow(_Row):
    """A window of a key and what it holds; ids ascending, those of two inputs by their side.

    `start` and `end` are None for a global window. A field may be left out.
    """

    key: str
    start: int | None
    end: int | None
    count: int
    sum: int | None = None
    ids: list[int] | None = None
    left: list[int] | None = None
    right: list[int] | None = None


class OpenRow(WindowRow):
    """A window that the state still holds; `end_passed`: it has fired."""

    end_passed: bool


class FiringRow(WindowRow):
    """One firing: the watermark at it, and what caused it, when.

    `timer` is the event time that it was set for; None: a record fired it. `seq` is its place among
    all firings, by which second windows name the results that they take in.
    """

    watermark: int
    arrival_ms: int
    after_record_id: int | None
    cause: Cause
    timer: int | None = None
    seq: int | None = None


class LateRow(_Row):
    """A record of the side output, and the watermark at its arrival."""

    id: int
    watermark: int
    input: str | None = None


class PairRow(_Row):
    """A pair of an interval join, when it was found, and the watermark then."""

    left: int
    right: int
    ts: int
    watermark: int
    arrival_ms: int
    after_record_id: int | None


class ThenFiring(FiringRow):
    """A firing of second windows; `seqs` are the first windows' firings in it, or their names."""

    seqs: list[int | str]


class ThenOpen(OpenRow):
    """A second window that the state still holds."""

    seqs: list[int | str]


class ThenLate(_Row):
    """A result that came too late for the second windows."""

    seq: int | str
    watermark: int


class ThenAnswer(_Row):
    """What second windows did with the results of the first."""

    firings: list[ThenFiring]
    late: list[ThenLate]
    open_at_end: list[ThenOpen]


class AnyAnswer(_Row):
    """The fields of every answer; the order of rows means nothing.

    Attributes:
        watermarks: None where an engine does not follow every advance of the watermark.
        valve_status: None where it does not follow the status either.
    """

    late: list[LateRow]
    final_watermark: int
    watermarks: list[WatermarkRow] | None = None
    valve_status: list[StatusRow] | None = None


class Answer(AnyAnswer):
    """What windows did.

    Attributes:
        then: what second windows made of that, if there are any.
        flink_defect: Flink lost what a session held (a new window was equal to one that had grown
            by a merge): its sessions may hold less than they should.
    """

    firings: list[FiringRow]
    no_window: list[int]
    final: list[WindowRow]
    open_at_end: list[OpenRow]
    then: ThenAnswer | None = None
    flink_defect: bool = False


class PairsAnswer(AnyAnswer):
    """What an interval join did.

    Attributes:
        input_watermarks: None where an engine does not follow an input's every advance.
        buffered: the records that are still kept, by input.
    """

    pairs: list[PairRow]
    input_watermarks: list[WatermarkRow] | None = None
    buffered: dict[str, list[int]]
