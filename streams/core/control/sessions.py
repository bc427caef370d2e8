"""What the trigger remembers of a session: its size, and what became of its commands."""

from dataclasses import dataclass, field
from typing import NamedTuple

from contextgauge.compaction.trigger import LAST_PAUSE_MS, MAX_UNHELPFUL
from contextgauge.units import MINUTE_MS
from schemas.commands import CommandFinished, CompactRequested
from schemas.records import ContextReading, Record, WindowSource
from streams.core.control.reasons import IdleReason
from streams.core.control.thresholds import Sizes, Subject

_MOST_OPEN = 20
_MOST_DOUBLED = 10
"""Pauses are bounded long before so many failures in a row."""


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The size of a session's main chain, by a reading; the window may be newer."""

    used_tokens: int
    window: int | None
    window_source: WindowSource
    model: str | None
    epoch: int
    """How many messages there were when it began: no other epoch has that in common."""

    @classmethod
    def of(cls, data: ContextReading) -> "ContextSize":
        """Return the size that a reading reports."""
        epoch = data.messages_total - data.messages
        return cls(data.used_tokens, data.window, data.window_source, data.model, epoch)


class Deferred(NamedTuple):
    """A reading above the threshold whose time had not come: it is evaluated again."""

    record: Record
    size: ContextSize
    logged_ms: int


@dataclass(slots=True)
class SessionMemory:
    """One session. Times are milliseconds since 1970, by the clock of who wrote the entry."""

    agent_id: str | None = None
    project: str | None = None
    is_identified: bool = False
    size: ContextSize | None = None
    was_below: bool = False
    """Whether the last size was below the threshold that held then."""
    open: dict[str, bool] = field(default_factory=dict)
    """Commands that are not finished, and whether each is urgent."""
    fired_ms: int | None = None
    was_urgent: bool = False
    failures: int = 0
    unhelpful: int = 0
    stopped_at: tuple[int, int | None] | None = None
    """The threshold and the window for which two compactions did not help."""
    awaits_effect: bool = False
    finished_ms: int = 0
    finished_epoch: int | None = None
    deferred: Deferred | None = None

    def subject(self, session_id: str, model: str | None) -> Subject:
        """Return what rules name it by."""
        return Subject(session_id, self.agent_id, self.project, model)

    def identify(self, agent_id: str | None, project: str | None) -> None:
        """Note whose session it is; what was known and is not reported now stays."""
        self.agent_id = self.agent_id if agent_id is None else agent_id
        self.project = self.project if project is None else project

    def requested(self, data: CompactRequested, time_ms: int) -> None:
        """Note a command."""
        self.open[data.command_id] = data.urgent or self.open.get(data.command_id, False)
        while len(self.open) > _MOST_OPEN:
            del self.open[next(iter(self.open))]
        if data.trigger != "manual":
            self.fired_ms = max(self.fired_ms or 0, time_ms)
            self.was_urgent = data.urgent

    def finished(self, data: CommandFinished, time_ms: int) -> None:
        """Note the outcome of a command."""
        self.open.pop(data.command_id, None)
        self.finished_ms = max(self.finished_ms, time_ms)
        if data.outcome == "completed":
            self.failures = 0
            self.awaits_effect = True
            self.finished_epoch = None if self.size is None else self.size.epoch
        else:
            self.failures = min(self.failures + 1, _MOST_DOUBLED)

    def below(self) -> None:
        """Note that its size is below the threshold."""
        self.was_below = True
        self.failures = self.unhelpful = 0
        self.awaits_effect, self.stopped_at, self.fired_ms = False, None, None

    def above(self, size: ContextSize, sizes: Sizes, now_ms: int) -> IdleReason | None:
        """Note that its size is above the threshold; return why nothing is to be done, if so."""
        self.was_below = False
        is_old = now_ms - self.finished_ms >= MINUTE_MS
        if self.awaits_effect and (is_old or size.epoch != self.finished_epoch):
            self.awaits_effect = False
            self.unhelpful += 1
            if self.unhelpful >= MAX_UNHELPFUL:
                self.stopped_at = (sizes.compact_at, size.window)
        if self.stopped_at is not None and self.stopped_at != (sizes.compact_at, size.window):
            self.stopped_at, self.unhelpful = None, 0
        if self.stopped_at is not None:
            return "no_progress"
        if self.failures:
            is_hard = sizes.hard_at is not None and size.used_tokens >= sizes.hard_at
            first_hard = is_hard and not self.was_urgent
            pause_ms = min(MINUTE_MS * 2 ** (self.failures - 1), LAST_PAUSE_MS)
            if now_ms - self.finished_ms < pause_ms and not first_hard:
                return "pause_after_failure"
        elif self.awaits_effect or self._fired_lately(now_ms):
            return "awaiting_effect"
        return None

    def _fired_lately(self, now_ms: int) -> bool:
        return self.fired_ms is not None and now_ms - self.fired_ms < MINUTE_MS
