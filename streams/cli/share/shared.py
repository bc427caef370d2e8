"""What is shared of a session: sizes and moments, by a list of what may leave.

Each value is a number of this module's choosing or one of the few words of its type. Names (of
sessions, folders, users, subagents, agents, tools), texts, errors, versions and dates are not read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from contextgauge.window_catalog import bundled
from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionStart,
    CompactionTiming,
    ContextEdit,
    ContextExhausted,
    ContextReading,
    ContextReset,
    ContextWarning,
    Record,
)
from streams.core.stored_records import whole_from

MOST_STEPS: Final = 4_000
"""More points than a screen has pixels tell no more; those next to an event always stay."""

OTHER_MODEL: Final = "another model"


@dataclass(slots=True)
class SharedStep:
    """A response: its size, window and percentage, and the time since the first record."""

    used: int
    window: int | None
    percent: float | None
    assumed: bool
    at_ms: int | None
    events: list["Event"] = field(default_factory=list)
    """What came after this response and before the next."""
    texts: list[dict[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Event:
    """A moment of the session. Fields that its kind does not have are null."""

    kind: str
    at_ms: int | None
    percent: float | None = None
    word: str | None = None
    """One of the words of a record's field: a trigger, an outcome, a reason."""
    number: int | None = None
    before: int | None = None
    after: int | None = None
    duration_ms: int | None = None


@dataclass(slots=True)
class SharedSession:
    """The main conversation of a session, step by step."""

    models: list[str]
    steps: list[SharedStep]
    response_ids: list[str | None]
    """Of each step; they do not leave."""
    subagents: int
    span_ms: int | None
    is_whole: bool = True
    """False: steps before these are no longer stored, and times count from the first of these."""

    def events(self, *kinds: str) -> list[Event]:
        """Return the events of some kinds."""
        return [event for step in self.steps for event in step.events if event.kind in kinds]

    def drawn(self) -> list[SharedStep]:
        """Return the steps, or as many as are drawn: the first, the last, and those at events."""
        each = len(self.steps) // MOST_STEPS + 1
        near = {
            at + side for at, step in enumerate(self.steps) if step.events for side in (-1, 0, 1)
        }
        drawn: list[SharedStep] = []
        texts: list[dict[str, str]] = []
        for at, step in enumerate(self.steps):
            texts += step.texts
            if at % each == 0 or at in near or at == len(self.steps) - 1:
                drawn.append(replace(step, texts=texts))
                texts = []
        return drawn


def as_json(steps: Iterable[SharedStep]) -> list[dict[str, Any]]:
    """Return steps as JSON has them, without what is null."""
    return [_without_null(asdict(step)) for step in steps]


def _without_null(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    if isinstance(value, dict):
        return {
            key: _without_null(each)
            for key, each in value.items()
            if each is not None and each != [] and each is not False
        }
    return [_without_null(each) for each in value] if isinstance(value, list) else value


def shared_of_stored(records: Sequence[Record]) -> SharedSession:
    """Return what is shared of the records that views hold: perhaps only of the newest."""
    begin = whole_from(records)
    made = shared(each for each in records if each.sequence >= begin)
    return replace(made, is_whole=begin == 0)


def shared(records: Iterable[Record]) -> SharedSession:
    """Return what is shared of a session's records, in their order."""
    steps: list[SharedStep] = []
    response_ids: list[str | None] = []
    models: dict[str, None] = {}
    subagents: set[str] = set()
    by_boundary: dict[str, Event] = {}
    first_ms: int | None = None
    last_ms: int | None = None
    waiting: list[Event] = []
    for record in records:
        data = record.data
        if data.inherited:
            continue
        if data.chain != MAIN_CHAIN:
            subagents.add(data.chain)
            continue
        if record.time_ms is not None:
            first_ms = record.time_ms if first_ms is None else first_ms
            last_ms = max(record.time_ms, last_ms or first_ms)
        at_ms = None if record.time_ms is None or first_ms is None else record.time_ms - first_ms
        if isinstance(data, ContextReading):
            models[_model(data.model)] = None
            response_ids.append(data.response_id)
            steps.append(
                SharedStep(
                    data.used_tokens,
                    data.window,
                    data.used_percent,
                    data.window_source in ("default", "exceeded"),
                    at_ms,
                    waiting,
                )
            )
            waiting = []
            continue
        _complete(by_boundary, data)
        event = _event(record, at_ms)
        if event is None:
            continue
        if isinstance(data, CompactBoundary):
            by_boundary[record.id] = event
        (steps[-1].events if steps else waiting).append(event)
    return SharedSession(
        list(models),
        steps,
        response_ids,
        len(subagents),
        None if first_ms is None or last_ms is None else last_ms - first_ms,
    )


def _model(name: str | None) -> str:
    """Return a model's public name: a deployment may be called after who runs it."""
    return (bundled().public_name(name) if name is not None else None) or OTHER_MODEL


def _event(record: Record, at_ms: int | None) -> Event | None:
    match record.data:
        case ContextWarning() as data:
            return Event("warning", at_ms, data.context_used_percent, number=data.threshold_percent)
        case CompactionStart() as data:
            return Event("start", at_ms, data.context_used_percent, data.trigger_reason)
        case CompactBoundary() as data:
            return Event(
                "compaction",
                at_ms,
                word=data.trigger,
                number=data.number,
                before=data.pre_tokens,
                duration_ms=data.duration_ms,
            )
        case CompactionFailed() as data:
            return Event("failed", at_ms, word=data.outcome, duration_ms=data.duration_ms)
        case ContextReset():
            return Event("reset", at_ms)
        case ContextEdit() as data:
            return Event("edit", at_ms, before=data.cleared_input_tokens)
        case ContextExhausted() as data:
            return Event("exhausted", at_ms, word=data.reason)
    return None


def _complete(by_boundary: dict[str, Event], data: object) -> None:
    """Add to a compaction what records after it measured."""
    if not isinstance(data, CompactionComplete | CompactionTiming):
        return
    event = by_boundary.get(data.boundary_id)
    if event is None:
        return
    if event.duration_ms is None:
        event.duration_ms = data.duration_ms
    if isinstance(data, CompactionComplete):
        event.after = data.tokens_after
