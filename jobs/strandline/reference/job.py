"""A running job: its inputs, whose clock is the arrival times of the records, and its operator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from strandline.errors import InputError
from strandline.model.watermarks import Ticks
from strandline.reference.answer import Cause, Origin, StatusChange
from strandline.reference.channels import Combiner, newcomers
from strandline.reference.records import Record, instants
from strandline.reference.valve import Signal
from strandline.spec.source import Source
from strandline.spec.watermark import Watermark


class Input:
    """One input: its channels, and the ticks of periodic emission at which they are probed."""

    def __init__(
        self,
        source: Source,
        watermark: Watermark,
        channels: Combiner,
        start_ms: int,
    ) -> None:
        """Start the clock.

        Args:
            source: the source in the pipeline's file.
            watermark: the watermark strategy of the source.
            channels: the channels of the source.
            start_ms: when the clock starts, in ms.
        """
        interval_ms = watermark.interval_ms
        self.channels = channels
        self.discovers = source.declared_channels is None
        self.is_sequenced = source.sequence is not None
        self.per_record = interval_ms is None
        self._arrival_is_event_time = watermark.arrival_is_event_time
        self.retired = dict(source.retired)
        self.start_ms = start_ms
        self._ticks = Ticks(start_ms, interval_ms) if interval_ms else None
        self.next_tick_ms = start_ms + (interval_ms or 0)

    def stamped(self, record: Record) -> Record:
        """The record, with its arrival as event time if the strategy is ingestion time."""
        return replace(record, ts_ms=record.arrival_ms) if self._arrival_is_event_time else record

    def finish(self, retired_ms: int) -> list[str]:
        """End the channels that are retired at an instant, and return their names."""
        ending = [channel for channel, at_ms in self.retired.items() if at_ms == retired_ms]
        for channel in ending:
            del self.retired[channel]
            self.channels.finish(channel)
        return ending

    def is_due(self, until_ms: int) -> bool:
        """Whether a tick up to an instant, inclusive, may emit something."""
        due = self._ticks is not None and self.next_tick_ms <= until_ms
        return due and not self.channels.is_settled

    def tick(self) -> Iterator[Signal]:
        """Run the next tick."""
        now_ms = self.next_tick_ms
        self.next_tick_ms += self._ticks.interval_ms if self._ticks else 0
        return self.channels.tick(now_ms)

    def pass_over(self, until_ms: int) -> None:
        """Skip ticks on which no channel would emit anything."""
        if self._ticks is not None:
            self.next_tick_ms = max(self.next_tick_ms, self._ticks.after(until_ms))


class Job(ABC):
    """A job that passes the records of one input or two to an operator, each at its arrival."""

    def __init__(self, pipeline: str, inputs: Mapping[str, Input]) -> None:
        """Start at the clock's start, without a record.

        Args:
            pipeline: the name of the pipeline, for errors.
            inputs: the inputs by the name in their records, in the order in which ticks run.
        """
        self._pipeline = pipeline
        self._inputs = inputs
        self._is_sequenced = any(given.is_sequenced for given in inputs.values())
        self.status: list[tuple[str, StatusChange]] = []

    @abstractmethod
    def process(self, record: Record, origin: Origin) -> None:
        """Process a record."""

    @abstractmethod
    def advance(self, name: str, watermark_ms: int, origin: Origin) -> None:
        """Process a higher watermark of an input."""

    def change_status(self, name: str, change: StatusChange) -> None:
        """Process a change of an input's status."""
        self.status.append((name, change))

    def run(
        self,
        records: Iterable[Record],
        *,
        horizon_ms: int | None,
        end_of_input: bool = False,
    ) -> None:
        """Run the records and the ticks of the clock in order of time, up to a horizon.

        Raises:
            InputError: a record's channel is not one of its input's channels.
        """
        clock_end_ms = max(given.start_ms for given in self._inputs.values())
        known = [r for r in records if horizon_ms is None or r.arrival_ms < horizon_ms]
        stamped = [self._inputs[record.input].stamped(record) for record in known]
        for instant in instants(stamped, sequenced=self._is_sequenced):
            clock_end_ms = instant[0].arrival_ms
            self._retire(until_ms=clock_end_ms)
            self._run_ticks(until_ms=clock_end_ms)
            self._receive(instant)
        if horizon_ms is not None:
            clock_end_ms = horizon_ms - 1
        self._retire(until_ms=clock_end_ms + 1)
        self._run_ticks(until_ms=clock_end_ms)
        if end_of_input:
            for name, given in self._inputs.items():
                self._apply(name, given.channels.end(), Origin(clock_end_ms, Cause.END))

    @property
    def violations(self) -> int:
        """The number of records below an earlier one, where a generator assumes ascending times."""
        return sum(given.channels.violations for given in self._inputs.values())

    def _retire(self, *, until_ms: int) -> None:
        """End the channels retired by an instant, each 1 ms before its retirement."""
        ends = [
            (at_ms, name)
            for name, given in self._inputs.items()
            for at_ms in given.retired.values()
        ]
        for at_ms, name in sorted({end for end in ends if end[0] <= until_ms}):
            self._run_ticks(until_ms=at_ms - 1)
            given = self._inputs[name]
            caused = given.channels.flush(given.finish(at_ms), at_ms - 1, probe=given.per_record)
            self._apply(name, caused, Origin(at_ms - 1, Cause.RECORD))

    def _run_ticks(self, *, until_ms: int) -> None:
        """Run the ticks up to an instant, inclusive, in order of time."""
        while due := [item for item in self._inputs.items() if item[1].is_due(until_ms)]:
            name, given = min(due, key=lambda item: item[1].next_tick_ms)
            origin = Origin(given.next_tick_ms, Cause.TICK)
            self._apply(name, given.tick(), origin)
        for given in self._inputs.values():
            given.pass_over(until_ms)

    def _receive(self, instant: tuple[Record, ...]) -> None:
        """Process the records of an instant, and then the watermarks that they offer at once.

        A channel that ends with this millisecond ends here too, unless instants have a sequence.
        """
        origin = Origin(instant[-1].arrival_ms, Cause.RECORD, instant[-1])
        for name, given in self._inputs.items():
            own = [record for record in instant if record.input == name]
            for channel in newcomers(own, given.channels.partitions):
                if not given.discovers:
                    self._refuse(name, given.channels.partitions, channel)
                self._apply(name, given.channels.join(channel), origin)
        for record in instant:
            self.process(record, Origin(record.arrival_ms, Cause.RECORD, record))
            self._inputs[record.input].channels.on_event(record)
        for name, given in self._inputs.items():
            active = {record.channel for record in instant if record.input == name}
            if not self._is_sequenced:
                active.update(given.finish(origin.at_ms + 1))
            caused = given.channels.flush(active, origin.at_ms, probe=given.per_record)
            self._apply(name, caused, origin)

    def _apply(self, name: str, signals: Iterable[Signal], origin: Origin) -> None:
        for signal in signals:
            if isinstance(signal, int):
                self.advance(name, signal, origin)
            else:
                self.change_status(name, StatusChange(origin, signal))

    def _refuse(self, name: str, known: Iterable[str], channel: str) -> None:
        path = f"sources.{name}.channels" if name else "source.channels"
        problem = f"{list(known)} lacks {channel!r}, which a record came through"
        way_out = "leave such records out: they are malformed"
        raise InputError(f"{self._pipeline}: {path}", problem, way_out)
