"""The result of a scenario, of Flink or of an engine, in the format of the goldens."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Cause = Literal["tick", "record", "end"]


class _Row(BaseModel):
    """A row of a result; further fields of a golden are not compared."""

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
    """A window of a key with its records; ids are ascending, for two inputs separate by side.

    `start` and `end` are None for a global window. Fields may be missing.
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
    """A window in the state at the end; `end_passed`: it has fired."""

    end_passed: bool


class FiringRow(WindowRow):
    """One firing, with its watermark, its cause and its time.

    `timer` is the event time of the timer that fired it; None: a record fired it. `seq` is its
    number among all firings, by which second windows name their input results.
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
    """A pair of an interval join, with the time and the watermark at which it was found."""

    left: int
    right: int
    ts: int
    watermark: int
    arrival_ms: int
    after_record_id: int | None


class ThenFiring(FiringRow):
    """A firing of second windows; `seqs` are the numbers or names of the first firings in it."""

    seqs: list[int | str]


class ThenOpen(OpenRow):
    """A second window in the state at the end."""

    seqs: list[int | str]


class ThenLate(_Row):
    """A result that was late for the second windows."""

    seq: int | str
    watermark: int


class ThenAnswer(_Row):
    """The result of second windows over the results of the first windows."""

    firings: list[ThenFiring]
    late: list[ThenLate]
    open_at_end: list[ThenOpen]


class AnyAnswer(_Row):
    """The fields of every result; the order of rows does not matter.

    Attributes:
        watermarks: the advances of the watermark; None if an engine does not compute them.
        valve_status: the changes between idle and active; None if an engine does not compute them.
    """

    late: list[LateRow]
    final_watermark: int
    watermarks: list[WatermarkRow] | None = None
    valve_status: list[StatusRow] | None = None


class Answer(AnyAnswer):
    """The result of windows.

    Attributes:
        then: the result of second windows, if there are any.
        flink_defect: whether Flink lost records of a session (a new window was equal to one that
            had grown by a merge), so that its sessions may contain too few records.
    """

    firings: list[FiringRow]
    no_window: list[int]
    final: list[WindowRow]
    open_at_end: list[OpenRow]
    then: ThenAnswer | None = None
    flink_defect: bool = False


class PairsAnswer(AnyAnswer):
    """The result of an interval join.

    Attributes:
        input_watermarks: the advances of each input's watermark; None if an engine does not compute
            them.
        buffered: the records in the state at the end, by input.
    """

    pairs: list[PairRow]
    input_watermarks: list[WatermarkRow] | None = None
    buffered: dict[str, list[int]]
