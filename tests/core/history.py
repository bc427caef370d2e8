"""Records by hand: one session's history, record by record.

    history = History()
    view = view_of(history.reading(50_000), history.reading(60_000))

Times are seconds after noon of the first of November 2026; None is a record without one.
"""

from dataclasses import dataclass
from typing import Any

from schemas.records import (
    Category,
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionProgress,
    CompactionStart,
    CompactionSummary,
    CompactionTiming,
    ContextExhausted,
    ContextLimits,
    ContextReading,
    ContextReset,
    DurationSource,
    Outcome,
    PinsChecked,
    Record,
    RecordData,
    SessionInfo,
    Trigger,
    TriggerReason,
)
from schemas.views import SessionView
from streams.core.projection.project import project

START_MS = 1_793_534_400_000
WINDOW = 200_000


@dataclass
class History:
    """One session; its records are numbered in the order in which they are made."""

    session: str = "s-1"
    sequence: int = 0
    at: float | None = 0

    def record(self, data: RecordData, at: float | None = -1) -> Record:
        """Return the next record; without `at`, a second after the one before."""
        self.sequence += 1
        if at == -1:
            at = None if self.at is None else self.at + 1
        self.at = at
        return Record(
            id=f"{self.session}-{self.sequence}",
            subject=data.chain,
            time_ms=None if at is None else START_MS + int(at * 1000),
            sequence=self.sequence,
            rules="1-test",
            data=data,
        )

    def common(self, chain: str = "main", **more: str | None) -> dict[str, Any]:
        """Return what every record's data carries."""
        known = {"model": "claude-sonnet-5", "task_id": None, "subagent_type": None}
        return {"session_id": self.session, "chain": chain} | known | more

    def reading(
        self,
        used: int,
        *,
        chain: str = "main",
        window: int | None = WINDOW,
        messages: int = 1,
        at: float | None = -1,
        late: bool | None = None,
        **more: str | None,
    ) -> Record:
        """An API response reported the size."""
        data = ContextReading(
            **self.common(chain, **more),
            response_id="msg_1",
            used_tokens=used,
            input_tokens=10,
            cache_creation_tokens=None,
            cache_read_tokens=used - 10,
            previous_output_tokens=None,
            window=window,
            window_source="default" if window else "exceeded",
            used_percent=used * 10_000 // window / 100 if window else None,
            messages=messages,
            messages_total=messages + 100,
            late=late,
        )
        return self.record(data, at)

    def limits(
        self,
        *,
        window: int | None = WINDOW,
        threshold: int | None = None,
        enabled: bool | None = None,
        total: int | None = None,
        categories: tuple[Category, ...] | None = None,
    ) -> Record:
        """The chain's limits as they are known now."""
        data = ContextLimits(
            **self.common(),
            window=window,
            window_source="runtime",
            auto_compact_enabled=enabled,
            auto_compact_threshold=threshold,
            effective_window=None,
            auto_compact_source=None,
            total_tokens=total,
            categories=categories,
            message_breakdown=None,
        )
        return self.record(data)

    def start(
        self, reason: TriggerReason | None = None, used: int | None = 150_000, at: float | None = -1
    ) -> Record:
        """A compaction attempt opens."""
        data = CompactionStart(
            **self.common(),
            attempt_id=f"{self.session}-{self.sequence + 1}",
            trigger_reason=reason,
            context_used_percent=None if used is None else used * 100 / WINDOW,
            used_tokens=used,
        )
        return self.record(data, at)

    def progress(self, attempt: Record, elapsed_ms: int = 30_000) -> Record:
        """A heartbeat."""
        data = CompactionProgress(**self.common(), attempt_id=attempt.id, elapsed_ms=elapsed_ms)
        return self.record(data)

    def boundary(  # noqa: PLR0913 -- by name: the fields of the record
        self,
        trigger: Trigger | None = "auto",
        *,
        pre: int | None = 160_000,
        number: int = 1,
        duration_ms: int | None = 30_000,
        duration_source: DurationSource = "reported",
        messages: int = 40,
        total: int = 140,
        chain: str = "main",
        at: float | None = -1,
        **more: str | None,
    ) -> Record:
        """A compaction succeeded."""
        data = CompactBoundary(
            **self.common(chain, **more),
            attempt_id=None,
            trigger=trigger,
            pre_tokens=pre,
            pre_tokens_source=None if pre is None else "reported",
            post_tokens=None,
            duration_ms=duration_ms,
            duration_source=None if duration_ms is None else duration_source,
            number=number,
            messages_since_last=messages,
            messages_total=total,
            metadata={"trigger": trigger},
        )
        return self.record(data, at)

    def timing(
        self, boundary: Record, duration_ms: int = 3_069, at: float | None = -1, **more: str | None
    ) -> Record:
        """A boundary's duration was reported after it."""
        data = CompactionTiming(
            **self.common(boundary.data.chain, **more),
            boundary_id=boundary.id,
            duration_ms=duration_ms,
            duration_source="reported",
        )
        return self.record(data, at)

    def summary(self, boundary: Record, text: str = "what happened") -> Record:
        """The summary that replaced the history."""
        chain = boundary.data.chain
        data = CompactionSummary(**self.common(chain), boundary_id=boundary.id, summary=text)
        return self.record(data)

    def complete(
        self,
        boundary: Record,
        after: int | None = 30_000,
        at: float | None = -1,
        *,
        cache_rewrite: int | None = None,
    ) -> Record:
        """A compaction was measured, or no longer can be."""
        assert isinstance(boundary.data, CompactBoundary)
        before = boundary.data.pre_tokens
        data = CompactionComplete(
            **self.common(boundary.data.chain, model=boundary.data.model),
            boundary_id=boundary.id,
            trigger=boundary.data.trigger,
            tokens_before=before,
            tokens_after=after,
            tokens_saved=None if before is None or after is None else before - after,
            duration_ms=boundary.data.duration_ms,
            cache_rewrite_tokens=cache_rewrite,
        )
        return self.record(data, at)

    def pins_checked(self, boundary: Record, kept: int = 3, lost: tuple[str, ...] = ()) -> Record:
        """The rules were looked for after a boundary."""
        assert isinstance(boundary.data, CompactBoundary)
        data = PinsChecked(
            **self.common(boundary.data.chain),
            boundary_id=boundary.id,
            number=boundary.data.number,
            pins_kept=kept,
            pins_lost=len(lost),
            lost_pins=lost,
        )
        return self.record(data)

    def failed(self, outcome: Outcome = "failed", error: str | None = "too long") -> Record:
        """An attempt ended without a boundary."""
        data = CompactionFailed(
            **self.common(), attempt_id=None, outcome=outcome, error=error, duration_ms=5_000
        )
        return self.record(data)

    def reset(self) -> Record:
        """The conversation was cleared."""
        return self.record(ContextReset(**self.common(), reason="clear"))

    def exhausted(self, chain: str = "main") -> Record:
        """A turn ended for lack of room."""
        data = ContextExhausted(**self.common(chain), reason="prompt_too_long", tokens_over=None)
        return self.record(data)

    def info(self, **facts: str | None) -> Record:
        """Facts of the session."""
        known = {"runtime": None, "runtime_version": None, "cwd": None, "forked_from": None}
        return self.record(SessionInfo(**(self.common(model=None) | known | facts)))


def view_of(*records: Record) -> SessionView:
    """Return the view after records at the even offsets: markers lie between."""
    view = None
    for number, record in enumerate(records):
        view = project(view, record, 2 * number)
    assert view is not None
    return view
