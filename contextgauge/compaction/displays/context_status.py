"""Seed 004's statistics of a context: its size by parts, its window and its messages. Pure."""

from dataclasses import dataclass

from contextgauge.compaction.engine.request_size import CallFrame


def percent(part: int, whole: int) -> int:
    """Return a floored percentage; 0 of nothing."""
    return part * 100 // whole if whole > 0 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextStatus:
    """What `/context` shows. Token counts are tokens of the next request, by its parts.

    `active` counts messages that the model sees, `total` all of the conversation, `summaries` all
    of its compactions. `is_compressed`: whether a summary is among `active`; None: where there are
    summaries. With `is_estimated` the counts and their percentage are marked with `~`.
    """

    window_tokens: int
    system_tokens: int = 0
    memory_tokens: int = 0
    conversation_tokens: int = 0
    active: int = 0
    total: int = 0
    summaries: int = 0
    oldest_age_ms: int | None = None
    is_compressed: bool | None = None
    is_estimated: bool = False

    @property
    def tokens(self) -> int:
        """The size of the next request."""
        return self.system_tokens + self.memory_tokens + self.conversation_tokens

    @property
    def percent(self) -> int:
        """The used share of the window, floored."""
        return percent(self.tokens, self.window_tokens)


def status_of(frame: CallFrame) -> ContextStatus:
    """Return the statistics of the next request.

    The system prompt includes definitions of tools. Memory is what the caller keeps (`keep_ids`)
    and what the profile's excluded tools read and wrote. What was reported beyond the estimates is
    of the conversation. The engine knows no times: the age of the oldest message is the caller's.
    """
    history, size = frame.history, frame.measure().before
    count, active = frame.counter.message, history.active
    tools = frame.profile.exclude_tools
    calls = {call.id for each in active for call in each.calls if call.name in tools}
    memory = [
        each
        for each in active
        if each.id in frame.call.keep_ids
        or any(call.id in calls for call in each.calls)
        or any(result.call_id in calls for result in each.results)
    ]
    remembered = {each.id for each in memory}
    system = [each for each in active if each.role == "system" and each.id not in remembered]
    system_tokens = min(size.tokens, size.system + size.tools + sum(map(count, system)))
    memory_tokens = min(size.tokens - system_tokens, sum(map(count, memory)))
    return ContextStatus(
        window_tokens=frame.window.tokens,
        system_tokens=system_tokens,
        memory_tokens=memory_tokens,
        conversation_tokens=size.tokens - system_tokens - memory_tokens,
        active=len(active),
        total=len(history.everything),
        summaries=history.rounds,
        is_compressed=any(each.compaction is not None for each in active),
        is_estimated=size.basis == "estimated",
    )
