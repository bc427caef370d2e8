"""A session whose records are evaluated as soon as they are derived."""

from typing import Any

from schemas.commands import (
    CommandEntry,
    CommandFinished,
    CommandOutcome,
    CompactionDecided,
    CompactRequested,
)
from schemas.records import Record
from streams.core.control.thresholds import SessionRule, ThresholdBook
from streams.core.control.trigger import Trigger
from tests.core import given
from tests.core.given import MODEL, SESSION, START_MS, Given, assistant

MINUTE_MS = 60_000
MAX_AGE_MS = 10 * MINUTE_MS
ON = SessionRule(automatic=True)


class Deciding:
    """A session whose records are evaluated as soon as they are derived."""

    def __init__(self, *rules: SessionRule) -> None:
        self.given = Given()
        self.trigger = Trigger(ThresholdBook(rules), MAX_AGE_MS)
        self.records: list[Record] = []

    def take(self, *bodies: Any, **how: Any) -> list[CommandEntry]:
        return self.observe(self.given.take(*bodies), **how)

    def observe(
        self, records: list[Record], *, late_ms: int = 0, read_late_ms: int = 0
    ) -> list[CommandEntry]:
        self.records += records
        return [
            entry
            for record in records
            for entry in self.trigger.observe(
                record,
                (record.time_ms or START_MS) + late_ms,
                (record.time_ms or START_MS) + late_ms + read_late_ms,
            )
        ]

    def finish(self, command_id: str, outcome: CommandOutcome, at: float) -> CommandEntry:
        data = CommandFinished(
            session_id=SESSION, command_id=command_id, outcome=outcome, attempt=1
        )
        time_ms = START_MS + int(at * 1_000)
        entry = CommandEntry(f"finished {command_id}", time_ms, data)
        self.trigger.note(entry)
        return entry

    def by_hand(self, at: float) -> CommandEntry:
        """Note a request that a person made."""
        data = CompactRequested(
            session_id=SESSION, command_id="by hand", trigger="manual", requested_by="a person"
        )
        entry = CommandEntry("requested by hand", START_MS + int(at * 1_000), data)
        self.trigger.note(entry)
        return entry


def init(model: str = MODEL, *, at: float) -> Any:
    """Return the `init` of an agent of one's own, which does not compact itself."""
    return given.init(model, at=at, runtime="other")


def at(percent: float, seconds: float, model: str = MODEL) -> Any:
    return assistant(f"r{seconds}", read=int(200_000 * percent / 100), at=seconds, model=model)


def requests(entries: list[CommandEntry]) -> list[CompactRequested]:
    return [each.data for each in entries if isinstance(each.data, CompactRequested)]


def reasons(entries: list[CommandEntry]) -> list[str]:
    return [each.data.reason for each in entries if isinstance(each.data, CompactionDecided)]


def after(seconds: float) -> int:
    return START_MS + int(seconds * 1_000)


def noted(entries: list[CommandEntry], *rules: SessionRule) -> Deciding:
    """Return another worker, which has read the log of commands."""
    other = Deciding(*(rules or (ON,)))
    for entry in entries:
        other.trigger.note(entry)
    return other


def recall(deciding: Deciding, records: list[Record], now: float) -> None:
    for record in records:
        deciding.trigger.recall(record, record.time_ms or START_MS)
    deciding.trigger.restored(after(now) - MAX_AGE_MS)
