"""What the trigger remembers of a session: its size, and what became of its commands."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from contextgauge.compaction.engine.trigger import LAST_PAUSE_MS, MAX_UNHELPFUL, next_at
from contextgauge.normalise.runtimes import COMPACTING_THEMSELVES
from contextgauge.units import MINUTE_MS
from schemas.commands import CommandFinished, CompactRequested
from schemas.records import ContextLimits, ContextReading, Record, Runtime, WindowSource
from streams.core.control.reasons import IdleReason
from streams.core.control.thresholds import Sizes, Subject

_LOOK_AGAIN_MS = MINUTE_MS
"""After it was looked up whose session it is, and something was not known."""
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

    def within(self, data: ContextLimits) -> "ContextSize | None":
        """Return the size with the window of limits; None where that is not another one."""
        if data.window in {None, self.window}:
            return None
        model = data.model or self.model
        return replace(self, window=data.window, window_source=data.window_source, model=model)


class SizeReading(NamedTuple):
    """A record that reports a session's size, and its Kafka timestamp.

    `is_recalled`: a former worker evaluated it, and what came of that is not known.
    """

    record: Record
    size: ContextSize
    logged_ms: int
    is_recalled: bool = False

    @property
    def session_id(self) -> str:
        """The session that it is of."""
        return self.record.data.session_id


@dataclass(slots=True)
class SessionMemory:
    """One session. Times are milliseconds since 1970, by the clock of who wrote the entry."""

    agent_id: str | None = None
    project: str | None = None
    runtime: Runtime | None = None
    asks: bool = False
    """Whether its agent asks for the context that its model should see."""
    is_identified: bool = False
    looked_up_ms: int | None = None
    """When it was looked up whose session it is."""
    size: ContextSize | None = None
    left_tokens: int | None = None
    """The first size since the last boundary; None where it is not known."""
    is_compacted: bool = False
    """Whether a boundary came, and no size since."""
    fired_tokens: int | None = None
    """The size for which a compaction was requested last, by the log."""
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
    stopped_by: str | None = None
    """The decision that says so, where it was read from the log: its epoch is in its id."""
    awaits_effect: bool = False
    finished_ms: int = 0
    completed_ms: int = 0
    """When a command completed last: earlier log entries show the size before it."""
    finished_epoch: int | None = None
    """The epoch that the last compaction ended; None where it is not known."""
    ended_ms: int = 0
    """When the last epoch ended, by Kafka."""
    deferred: SizeReading | None = None
    """What is evaluated again: its time had not come, or its command is not finished."""

    def subject(self, session_id: str, model: str | None) -> Subject:
        """Return what rules name it by."""
        return Subject(session_id, self.agent_id, self.project, model)

    @property
    def lacks_driver(self) -> bool:
        """Whether what the service does would have no effect: the runtime compacts itself."""
        return self.runtime in COMPACTING_THEMSELVES and not self.asks

    def identify(self, agent_id: str | None, project: str | None, runtime: Runtime | None) -> None:
        """Note whose session it is; what was known and is not reported now stays."""
        self.agent_id = self.agent_id if agent_id is None else agent_id
        self.project = self.project if project is None else project
        self.runtime = self.runtime if runtime is None else runtime

    def looked_up(self, now_ms: int, *, asks: bool) -> None:
        """Note that it was looked up whose session it is, and whether its agent asks."""
        known = (self.agent_id, self.project, self.runtime)
        self.is_identified = any(each is not None for each in known)
        self.asks = self.asks or asks
        self.looked_up_ms = now_ms

    def is_known(self, by_identity: bool) -> bool:  # noqa: FBT001 -- what has to be known
        """Return whether it was looked up whose session it is; else by what runs it."""
        is_looked_up = self.is_identified or self.looked_up_ms is not None
        return is_looked_up or (self.runtime is not None and not by_identity)

    def is_to_be_looked_up(self, now_ms: int) -> bool:
        """Return whether something of it is not known, and may be by now."""
        is_open = self.lacks_driver or not self.is_identified
        if self.looked_up_ms is None:
            return is_open
        return is_open and now_ms - self.looked_up_ms >= _LOOK_AGAIN_MS

    def requested(self, data: CompactRequested, time_ms: int) -> None:
        """Note a command."""
        self.open[data.command_id] = data.urgent or self.open.get(data.command_id, False)
        while len(self.open) > _MOST_OPEN:
            del self.open[next(iter(self.open))]
        if data.trigger != "manual":
            self.awaits_effect = False  # it was seen, or this would not have been requested
            if self.stopped_at is not None and not data.urgent:  # and what stopped it is over
                self.stopped_at, self.stopped_by, self.unhelpful = None, None, 0
            self.fired_ms = max(self.fired_ms or 0, time_ms)
            self.was_urgent = data.urgent

    def finished(self, data: CommandFinished, time_ms: int) -> None:
        """Note the outcome of a command."""
        self.open.pop(data.command_id, None)
        self.finished_ms = max(self.finished_ms, time_ms)
        if data.outcome == "completed":
            self.failures = 0
            self.completed_ms = max(self.completed_ms, time_ms)
            # The log of commands may be read later than the records: the size is the new one then.
            is_seen = self.size is not None and self.ended_ms >= time_ms
            self.awaits_effect = not (is_seen and self.was_below)
            self.finished_epoch = None if self.size is None or is_seen else self.size.epoch
        else:
            self.failures = min(self.failures + 1, _MOST_DOUBLED)

    def stopped(self, entry_id: str, compact_at: int, window: int | None) -> None:
        """Note that two compactions did not help, as the log says: a former worker's decision."""
        if self.stopped_at is None or self.stopped_by is not None:
            self.stopped_at, self.stopped_by = (compact_at, window), entry_id
            self.unhelpful, self.awaits_effect = MAX_UNHELPFUL, False

    def counted(self, unhelpful: int, reason: str) -> None:
        """Note how many compactions did not help, as the log says: a former worker's decision.

        Two reasons say that this one had seen the effect of the last compaction. A pause after a
        failure does not where the log has a compaction after the failure: it was not known yet.
        """
        self.unhelpful = unhelpful
        if reason == "awaiting_effect" or (reason == "pause_after_failure" and self.failures):
            self.awaits_effect = False

    def doubted(self) -> None:
        """Try once more: another epoch began, and whether it was below meanwhile is not known."""
        self.stopped_at, self.stopped_by = None, None
        self.unhelpful = MAX_UNHELPFUL - 1

    def ended(self, logged_ms: int, *, is_compacted: bool) -> None:
        """Note that an epoch ended: its size and what was deferred in it are of the past."""
        self.size = self.deferred = self.left_tokens = None
        self.is_compacted = is_compacted
        self.ended_ms = max(self.ended_ms, logged_ms)

    def read(self, size: ContextSize) -> None:
        """Note its size."""
        self.size = size
        if self.is_compacted:
            self.left_tokens, self.is_compacted = size.used_tokens, False

    def rests(self, size: ContextSize, sizes: Sizes) -> bool:
        """Return whether nothing is due at a size, and note it where that is below the threshold.

        After a compaction that left it below the threshold, a tenth of the window is added before
        the next: what of the window can be changed is not known here.
        """
        if size.used_tokens < sizes.compact_at:
            self._below()
            return True
        left, window = self.left_tokens, size.window or 0
        left = None if left is None or left >= sizes.compact_at else left
        return size.used_tokens < next_at(sizes.compact_at, left, window, sizes.hard_at or window)

    def _below(self) -> None:
        self.was_below = True
        self.failures = self.unhelpful = 0
        self.awaits_effect, self.fired_ms = False, None
        self.stopped_at = self.stopped_by = None

    def above(self, size: ContextSize, sizes: Sizes, now_ms: int) -> IdleReason | None:
        """Note that its size is above the threshold; return why nothing is to be done, if so."""
        self.was_below = False
        is_old = not 0 <= now_ms - self.finished_ms < MINUTE_MS
        if self.awaits_effect and (is_old or self._has_ended(size)):
            self.awaits_effect = False
            self.unhelpful += 1
            if self.unhelpful >= MAX_UNHELPFUL:
                self.stopped_at = (sizes.compact_at, size.window)
        if self.stopped_at is not None and self.stopped_at != (sizes.compact_at, size.window):
            self.stopped_at, self.stopped_by, self.unhelpful = None, None, 0
        if self._is_due(size, sizes):
            return None
        if self.stopped_at is not None:
            return "no_progress"
        if self.failures:
            pause_ms = min(MINUTE_MS * 2 ** (self.failures - 1), LAST_PAUSE_MS)
            if 0 <= now_ms - self.finished_ms < pause_ms:
                return "pause_after_failure"
        elif self.awaits_effect or self._fired_lately(now_ms):
            return "awaiting_effect"
        return None

    def _is_due(self, size: ContextSize, sizes: Sizes) -> bool:
        """Return whether no pause counts: at the hard limit, once, and then for each tenth more."""
        if sizes.hard_at is None or size.used_tokens < sizes.hard_at:
            return False
        fired, window = self.fired_tokens, size.window or 0
        if self.failures and not self.was_urgent:
            return True
        return fired is not None and size.used_tokens >= next_at(0, fired, window, 2 * window)

    def _has_ended(self, size: ContextSize) -> bool:
        """Return whether the epoch that was compacted is over, as far as is known."""
        if self.finished_epoch is None:
            return self.ended_ms >= self.completed_ms
        return size.epoch != self.finished_epoch

    def _fired_lately(self, now_ms: int) -> bool:
        return self.fired_ms is not None and 0 <= now_ms - self.fired_ms < MINUTE_MS
