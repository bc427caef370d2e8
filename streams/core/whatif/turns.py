"""What a chain's records say that a replay needs: its responses, and what came between them.

Inherited records (R30) are left out: the session that they were copied from has them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionSummary,
    CompactionTiming,
    ContextLimits,
    ContextReading,
    ContextReset,
    PinsChecked,
    Record,
    RecordData,
    SessionInfo,
)

_CHARACTERS_PER_TOKEN: Final = 4
"""As the engine estimates a text's tokens."""


class ChainTurn(NamedTuple):
    """One measured response, tokens. `used` is the sum of input, creation and read.

    `creation_1h` is the part of the creation that is kept for an hour. `output` is 0 where it is
    not known (`is_output_known`). `threshold` is the runtime's own, as far as it was reported until
    then.
    """

    time_ms: int | None
    response_id: str | None
    model: str | None
    window: int | None
    used: int
    input: int
    creation: int
    creation_1h: int
    read: int
    output: int
    threshold: int | None = None
    service_tier: str | None = None
    is_output_known: bool = True


class RecordedCompaction(NamedTuple):
    """One boundary, with what later records add to it; None: not known.

    `is_given`: its position does not follow from a trigger, so that a replay takes it as it is; it
    was requested, made of an idle session, or what began it is unknown. `tokens_after` is the next
    response's size. `duration_ms` is 0 for one that was made in the background. `summary_input` to
    `summary_output` are of the call that wrote the summary, input with what it read and wrote;
    `summary_tokens` is an estimate from the text.
    """

    boundary_id: str
    number: int
    time_ms: int | None
    trigger: str | None
    is_given: bool
    pre_tokens: int | None
    is_pre_reported: bool = True
    tokens_after: int | None = None
    duration_ms: int | None = None
    summary_input: int | None = None
    summary_read: int | None = None
    summary_written: int | None = None
    summary_written_1h: int | None = None
    summary_output: int | None = None
    summary_tokens: int | None = None
    pins_kept: int | None = None
    pins_lost: int | None = None


class Between(NamedTuple):
    """What came before a response, after the one before it."""

    compactions: tuple[RecordedCompaction, ...] = ()
    is_reset: bool = False
    has_failed_attempt: bool = False


NOTHING_BETWEEN: Final = Between()


@dataclass(frozen=True, slots=True)
class ChainLog:
    """A chain of a session. `between[i]` came before `turns[i]`; the last one after all turns.

    `runtime` and `settings` are the session's, as its records have them.
    """

    session_id: str
    chain: str
    runtime: str | None
    settings: Mapping[str, Any]
    turns: tuple[ChainTurn, ...]
    between: tuple[Between, ...]

    @property
    def model(self) -> str | None:
        """The model of the last response."""
        return self.turns[-1].model if self.turns else None

    @property
    def compactions(self) -> list[RecordedCompaction]:
        """The recorded compactions in order."""
        return [each for between in self.between for each in between.compactions]


@dataclass(slots=True)
class _Chain:
    """A chain while its records are read."""

    turns: list[ChainTurn] = field(default_factory=list)
    between: list[Between] = field(default_factory=lambda: [NOTHING_BETWEEN])
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    threshold: int | None = None

    def change(
        self, boundary_id: str, changed: Callable[[RecordedCompaction], RecordedCompaction]
    ) -> None:
        """Add to a boundary what a later record has of it."""
        place = self.places.get(boundary_id)
        if place is None:
            return
        at, number = place
        compactions = list(self.between[at].compactions)
        compactions[number] = changed(compactions[number])
        self.between[at] = self.between[at]._replace(compactions=tuple(compactions))

    def add_late(self, turn: ChainTurn) -> None:
        """Add a response that is older than the last one, which the size is known from."""
        at = len(self.turns) - 1
        self.turns.insert(at, turn)
        self.between.insert(at, NOTHING_BETWEEN)
        for boundary_id, (place, number) in self.places.items():
            self.places[boundary_id] = place + (place >= at), number


class LogReader:
    """Reads chains from records, in the order of each session's sequence."""

    def __init__(self) -> None:
        self._chains: dict[tuple[str, str], _Chain] = {}
        self._runtimes: dict[str, str] = {}
        self._settings: dict[str, Mapping[str, Any]] = {}

    def add(self, records: Iterable[Record]) -> None:
        """Read more records."""
        for record in records:
            if record.data.inherited is not True:
                self._read(record)

    def logs(self) -> list[ChainLog]:
        """Return the chains with at least one response, in the order in which they began."""
        return [
            ChainLog(
                session_id,
                name,
                self._runtimes.get(session_id),
                self._settings.get(session_id, {}),
                tuple(chain.turns),
                tuple(chain.between),
            )
            for (session_id, name), chain in self._chains.items()
            if chain.turns
        ]

    def _read(self, record: Record) -> None:
        data = record.data
        if isinstance(data, SessionInfo):
            self._note(data)
            return
        chain = self._chains.setdefault((data.session_id, data.chain), _Chain())
        match data:
            case ContextReading():
                _add_turn(chain, data, record.time_ms)
            case CompactBoundary():
                _add_boundary(chain, data, record)
            case ContextReset():
                chain.between[-1] = chain.between[-1]._replace(is_reset=True)
            case CompactionFailed():
                chain.between[-1] = chain.between[-1]._replace(has_failed_attempt=True)
            case ContextLimits():
                chain.threshold = data.auto_compact_threshold or chain.threshold
            case _:
                _add_later(chain, data)

    def _note(self, data: SessionInfo) -> None:
        if data.runtime is not None:
            self._runtimes[data.session_id] = data.runtime
        if data.compaction_settings:
            self._settings[data.session_id] = dict(data.compaction_settings)


def read_logs(records: Iterable[Record]) -> list[ChainLog]:
    """Return the chains of these records."""
    reader = LogReader()
    reader.add(records)
    return reader.logs()


def _add_turn(chain: _Chain, data: ContextReading, time_ms: int | None) -> None:
    turn = ChainTurn(
        time_ms,
        data.response_id,
        data.model,
        data.window,
        data.used_tokens,
        data.input_tokens or 0,
        data.cache_creation_tokens or 0,
        data.cache_creation_1h_tokens or 0,
        data.cache_read_tokens or 0,
        data.output_tokens or 0,
        chain.threshold,
        data.service_tier,
        data.output_tokens is not None,
    )
    if data.late and chain.turns:
        chain.add_late(turn)
        return
    if chain.turns and data.previous_output_tokens is not None:
        chain.turns[-1] = chain.turns[-1]._replace(
            output=data.previous_output_tokens, is_output_known=True
        )
    if (
        data.response_id is not None
        and chain.between[-1] == NOTHING_BETWEEN
        and (chain.turns and chain.turns[-1].response_id == data.response_id)
    ):
        chain.turns[-1] = turn  # reported again, with its last figures
        return
    chain.turns.append(turn)
    chain.between.append(NOTHING_BETWEEN)


def _add_later(chain: _Chain, data: RecordData) -> None:
    """Add to a boundary what a later record has of it."""
    match data:
        case CompactionSummary():
            tokens = -(-len(data.summary) // _CHARACTERS_PER_TOKEN)
            chain.change(data.boundary_id, lambda each: each._replace(summary_tokens=tokens))
        case CompactionTiming():
            chain.change(data.boundary_id, lambda each: each._replace(duration_ms=data.duration_ms))
        case CompactionComplete() if data.tokens_after is not None:
            chain.change(
                data.boundary_id, lambda each: each._replace(tokens_after=data.tokens_after)
            )
        case PinsChecked():
            chain.change(
                data.boundary_id,
                lambda each: each._replace(pins_kept=data.pins_kept, pins_lost=data.pins_lost),
            )
        case _:
            pass


def _add_boundary(chain: _Chain, data: CompactBoundary, record: Record) -> None:
    last, receipt = chain.between[-1], data.receipt
    chain.places[record.id] = (len(chain.between) - 1, len(last.compactions))
    compaction = RecordedCompaction(
        record.id,
        data.number,
        record.time_ms,
        data.trigger,
        data.trigger != "auto" or data.idle_ms is not None,
        data.pre_tokens,
        is_pre_reported=data.pre_tokens_source == "reported",
        duration_ms=0 if data.duration_source == "precomputed" else data.duration_ms,
        summary_input=None if receipt is None else receipt.summary_input_tokens,
        summary_read=None if receipt is None else receipt.summary_cache_read_tokens,
        summary_written=data.summary_cache_creation_tokens,
        summary_written_1h=data.summary_cache_creation_1h_tokens,
        summary_output=None if receipt is None else receipt.summary_output_tokens,
    )
    chain.between[-1] = last._replace(compactions=(*last.compactions, compaction))


def growths(log: ChainLog) -> Sequence[int]:
    """Return by how much each request is larger than the one before it, without a compaction.

    The first of a chain, and the first after a reset, is 0: nothing comes before it. Before a
    boundary it is the runtime's own size of that moment less the last response's; where it reports
    none, what the response wrote.
    """
    grown = [0]
    for number, between in enumerate(log.between[1:], 1):
        before = log.turns[number - 1]
        if between.is_reset:
            grown.append(0)
        elif between.compactions:
            first = between.compactions[0]
            if first.is_pre_reported and first.pre_tokens is not None:
                grown.append(max(0, first.pre_tokens - before.used))
            else:
                grown.append(before.output)
        elif number < len(log.turns):
            grown.append(log.turns[number].used - before.used)
        else:
            grown.append(0)
    return grown


def known_growths(log: ChainLog) -> Sequence[int]:
    """Return by how much what was known before each request exceeds the last response's size.

    A runtime decides by what is known then: the last response's input and output, or its own
    estimate, which boundaries report. The results of tools that came since are in the next response
    only.
    """
    grown = growths(log)
    known = [0]
    for number, between in enumerate(log.between[1:], 1):
        is_reported = bool(between.compactions) and between.compactions[0].is_pre_reported
        known.append(grown[number] if is_reported else log.turns[number - 1].output)
    return known
