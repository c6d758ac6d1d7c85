"""An answer to a scenario, in the words of the goldens: what Flink gave, or an engine gives."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Cause = Literal["tick", "record", "end"]


class _Row(BaseModel):
    """A row of an answer; what a golden tells beyond it is not compared."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class WatermarkRow(_Row):
    """A rise of the combined watermark."""

    at_arrival_ms: int
    after_record_id: int | None
    cause: Cause
    watermark: int


class StatusRow(_Row):
    """A change of the combined input between idle and active."""

    at_arrival_ms: int
    after_record_id: int | None
    cause: Cause
    status: str


class WindowRow(_Row):
    """A window of a key and what it holds; `ids` ascending, None where they are not given."""

    key: str
    start: int
    end: int
    count: int
    sum: int
    ids: list[int] | None = None


class OpenRow(WindowRow):
    """A window that the state still holds; `end_passed`: it has fired."""

    end_passed: bool


class FiringRow(WindowRow):
    """One firing: the watermark it met, and what caused it, when."""

    watermark: int
    arrival_ms: int
    after_record_id: int | None
    cause: Cause


class LateRow(_Row):
    """A record of the side output, and the watermark it met."""

    id: int
    watermark: int


class Answer(_Row):
    """Everything that is compared; the order of rows means nothing.

    Attributes:
        watermarks: None where an engine does not follow every rise of the watermark.
        valve_status: None where it does not follow the status either.
        flink_defect: Flink lost what a session held (a new window was equal to one that had grown
            by a merge): its sessions may hold less than they should.
    """

    firings: list[FiringRow]
    late: list[LateRow]
    no_window: list[int]
    final: list[WindowRow]
    open_at_end: list[OpenRow]
    final_watermark: int
    watermarks: list[WatermarkRow] | None = None
    valve_status: list[StatusRow] | None = None
    flink_defect: bool = False
