"""Any inbound spelling or provider to one small union of signals.

The only place that knows providers. `normalise` is total: whatever object comes, it answers
with the message's signals, or with None where the message says nothing that could change any
record, now or later (R4).
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Final

from contextgauge.normalise import claude, codex, gemini, qwen, responses, session_facts
from contextgauge.normalise.fields import (
    MAX_LONG_NAME,
    MAX_NAME,
    count,
    flag,
    in_range,
    long_name,
    mapping,
    moment_ms,
    name,
    text,
)
from contextgauge.normalise.runtimes import CLAUDE_CODE, QWEN_CODE, of_transcript
from contextgauge.normalise.signals import (
    Body,
    CompactionRefused,
    CompactionStatus,
    InputMessage,
    Normal,
    Response,
    ResponseEnd,
    SessionFacts,
    Signal,
    Usage,
)
from contextgauge.normalise.spellings import AGENT, PARENT, SESSION, SIDECHAIN, SUBAGENT_TYPE
from contextgauge.normalise.usual import (
    USUAL_RESPONSE,
    USUAL_RESPONSE_END,
    USUAL_USER,
    UsualMessage,
)
from contextgauge.records import Json

OWN_CALL_PREFIX: Final = "acompact"
"""Agent ids of a compaction's own call begin so; their chains emit nothing (R11)."""

_OPENS_TURN: Final = ("turn_context", "event_msg")
"""Types of a rollout's lines that may open a turn."""

_OF_ATTEMPTS: Final = (CompactionStatus, CompactionRefused)
"""A status that is marked as a subagent's moves nothing (R15)."""

Reader = Callable[[Body], tuple[Signal, ...]]


def _nothing(_: Body) -> tuple[Signal, ...]:
    return ()


def _system(body: Body) -> tuple[Signal, ...]:
    """Read a `system` message by its subtype; one without a subtype may be an early `status`."""
    return _SYSTEM.get(text(body, "subtype") or "status", _nothing)(body)


_SYSTEM: Final[dict[str, Reader]] = {
    "init": claude.init,
    "status": claude.status,
    "compact_boundary": claude.compact_boundary,
    "microcompact_boundary": claude.microcompact_boundary,
    "pins_checked": claude.pins_checked,
    "model_refusal_fallback": claude.model_fallback,
    "autocompact_state": claude.autocompact_state,
    "hook_started": claude.hook_frame,
    "hook_response": claude.hook_frame,
    "conversation_reset": claude.conversation_reset,
}

_TYPES: Final[dict[str, Reader]] = {
    "assistant": claude.assistant,
    "user": claude.user,
    "result": claude.result,
    "system": _system,
    "stream_event": responses.stream_event,
    "conversation_reset": claude.conversation_reset,
    "autocompact_state": claude.autocompact_state,
    "control_response": claude.control_response,
    "control_request": claude.control_request,
    "session_meta": codex.session_meta,
    "turn_context": codex.turn_context,
    "response_item": codex.response_item,
    "event_msg": codex.event_msg,
    "compacted": codex.compacted,
    "thread.started": codex.thread_started,
    "turn.completed": codex.turn_completed,
    "message": claude.message,
    "message_start": responses.bare_event,
    "message_delta": responses.bare_event,
    "response.completed": responses.completed_response,
    "gemini": gemini.message,
}

_ADAPTERS: Final[Mapping[str, Mapping[str, Reader]]] = {
    QWEN_CODE: {
        "assistant": qwen.assistant,
        "user": qwen.user,
        "tool_result": qwen.user,
        "system": qwen.system,
    }
}
"""Readers of runtimes whose transcripts have Claude Code's fields, by a line's type."""


_SELDOM: Final = frozenset({"parentToolUseId", "task_id"}).union(
    AGENT, SUBAGENT_TYPE, SIDECHAIN, session_facts.TRANSCRIPT_FIELDS
)
"""Fields of a subagent or a transcript: most frames of a stream have none, which one look shows."""


def _untyped(body: Body) -> tuple[Signal, ...]:
    """Read what has no `type`: a hook's input, a notification, or a provider's bare response."""
    if "method" in body:
        return codex.notification(body)
    if "result" in body:
        return codex.answer(body)
    return claude.hook_input(body) or gemini.rewind(body) or responses.raw_response(body)


def _readers_of(body: Body) -> Mapping[str, Reader]:
    """Return the readers of the runtime that wrote a line, by the line's type."""
    if not session_facts.is_transcript(body):
        return _TYPES
    return _ADAPTERS.get(of_transcript(body) or CLAUDE_CODE, _TYPES)


def normalise(body: Body, message: InputMessage) -> Normal | None:
    """Return what the message says, or None where it is ignorable. Never raises.

    `body` is its object, parsed.
    """
    kind = body.get("type")
    signals = (
        _readers_of(body).get(kind, _nothing)(body) if isinstance(kind, str) else _untyped(body)
    )
    if body.keys().isdisjoint(_SELDOM) and message.thread_id is None:
        if not signals:
            return None
        agent_id = subagent_type = task_id = None
        sidechain = False
        parent_id = name(body, "parent_tool_use_id")
    else:
        agent_id = name(body, *AGENT)
        parent_id = name(body, *PARENT)
        sidechain = flag(body, *SIDECHAIN)
        subagent_type = name(body, *SUBAGENT_TYPE)
        task_id = name(body, "task_id")
        if message.thread_id is not None and not sidechain and parent_id is None:
            agent_id, sidechain = _short(message.thread_id, MAX_NAME), True
            subagent_type = codex.subagent_type(body)
            signals = tuple(map(_of_subagent, signals))
        if not _reports_facts(signals):
            only_new = sidechain or parent_id is not None or not signals
            signals = (*session_facts.transcript_facts(body, only_new=only_new), *signals)
        if parent_id is None and _is_own_call(agent_id, sidechain=sidechain):
            signals = claude.own_call(agent_id or "", body)
    if sidechain or parent_id is not None:
        signals = tuple(signal for signal in signals if not isinstance(signal, _OF_ATTEMPTS))
    if not signals:
        return None
    agent, settings = _short(message.publisher_agent_id, MAX_NAME), message.settings
    if agent or settings is not None:
        only_new = sidechain or parent_id is not None
        signals = _of_publisher(signals, agent, settings, only_new=only_new)
    uuid = name(body, "uuid")
    own_ms = moment_ms(body.get("timestamp"))
    if own_ms is None and not isinstance(kind, str):
        own_ms = codex.moment(body)
    return Normal(
        session_of(body, message.session_hint),
        _cause(message) if uuid is None else uuid,
        own_ms,
        None if message.received_ms is None else in_range(message.received_ms),
        agent_id,
        parent_id,
        sidechain,
        subagent_type,
        _short(message.task_id, MAX_NAME) or task_id,
        signals,
        session_facts.is_copy(body) or message.inherited,
        codex.turn_ms(body) if kind in _OPENS_TURN else None,
        count(body, "ordinal"),
    )


def _of_subagent(signal: Signal) -> Signal:
    """Return a signal of a subagent's rollout: what it says of its session is of itself only."""
    if isinstance(signal, SessionFacts):
        return signal._replace(model=None, forked_from=None, only_new=True)
    return signal


def normalise_usual(usual: UsualMessage, message: InputMessage) -> Normal | None:
    """Do what `normalise` does, for what a quicker reader says of a message."""
    kind, is_transcript = usual.kind, usual.is_transcript
    parent_id, sidechain = usual.parent_id, usual.is_sidechain
    signals: tuple[Signal, ...] = ()
    if kind == USUAL_USER:
        signals = claude.COUNTED_LINE
    elif kind == USUAL_RESPONSE:
        key = usual.response_id
        usage = Usage(usual.input, usual.creation, usual.read, usual.creation_1h)
        output = usual.output if is_transcript else None
        signals = (
            Response(key, key, usual.model, usage, output, (), exhausted=False, boundary=None),
        )
    elif kind == USUAL_RESPONSE_END:
        counts = Usage(usual.input, usual.creation, usual.read, usual.creation_1h)
        measured = counts if counts.used else None
        signals = (ResponseEnd(usual.output, (), exhausted=False, usage=measured),)
    if is_transcript:
        only_new = sidechain or parent_id is not None or not signals
        version = usual.version
        runtime = None if version is None else CLAUDE_CODE
        facts = session_facts.facts_of(runtime, version, usual.folder, None, only_new=only_new)
        signals = (*facts, *signals)
        if not signals:
            return None
    if agent := _short(message.publisher_agent_id, MAX_NAME):
        only_new = sidechain or parent_id is not None
        signals = _of_publisher(signals, agent, None, only_new=only_new)
    session_id, uuid, moment = usual.session_id, usual.uuid, usual.moment
    return Normal(
        _short(message.session_hint, MAX_LONG_NAME) if session_id is None else session_id,
        _digest(message.value) if uuid is None else uuid,
        in_range(moment) if isinstance(moment, int) else moment_ms(moment),
        None if message.received_ms is None else in_range(message.received_ms),
        usual.agent_id,
        parent_id,
        sidechain,
        usual.subagent_type,
        _short(message.task_id, MAX_NAME),
        signals,
    )


def _is_own_call(agent_id: str | None, *, sidechain: bool) -> bool:
    """Return whether a line is a compaction's own call (R11)."""
    return sidechain and agent_id is not None and agent_id.startswith(OWN_CALL_PREFIX)


def _reports_facts(signals: tuple[Signal, ...]) -> bool:
    """Return whether a message reports facts in its own fields: one message gives one record."""
    for signal in signals:  # noqa: SIM110 -- any() takes twice as long, for each line
        if isinstance(signal, SessionFacts):
            return True
    return False


def _of_publisher(
    signals: tuple[Signal, ...],
    agent: str | None,
    settings: dict[str, Json] | None,
    *,
    only_new: bool,
) -> tuple[Signal, ...]:
    """Add the agent and the settings that the publisher named to the facts of its session.

    They go into the facts that are there, so that one message gives one record of them.
    """
    for place, signal in enumerate(signals):
        if isinstance(signal, SessionFacts):
            named = signal._replace(publisher_agent_id=agent, compaction_settings=settings)
            return (*signals[:place], named, *signals[place + 1 :])
    return (SessionFacts(None, None, None, None, None, only_new, agent, settings), *signals)


def _short(value: str | None, limit: int) -> str | None:
    """Return the value of a header, unless it is empty or longer than any such name."""
    return value if value and len(value) <= limit else None


def _cause(message: InputMessage) -> str:
    """Return what identifies a message without a uuid; two threads may have equal lines."""
    digest = _digest(message.value)
    return digest if message.thread_id is None else f"{message.thread_id} {digest}"


def _digest(raw: bytes) -> str:
    """Return the SHA-256 of the raw bytes without the line end."""
    return hashlib.sha256(raw.removesuffix(b"\n").removesuffix(b"\r")).hexdigest()


def session_of(body: Body, hint: str | None) -> str | None:
    """Return the session by R1: the message's own, else the container's.

    A hook callback belongs to the stream's session, its input's own is the last resort; so is
    a rollout's own id for its head. A message whose own id is too long to be one belongs to no
    session, whatever its container is.
    """
    own = long_name(body, *SESSION) or codex.thread_of(body)
    if own is not None:
        return own
    if text(body, *SESSION) is not None:
        return None
    if (hinted := _short(hint, MAX_LONG_NAME)) is not None:
        return hinted
    if body.get("type") == "session_meta":
        return _short(codex.thread_owner(body)[0], MAX_LONG_NAME)
    request = mapping(body, "request") or {}
    return long_name(mapping(request, "input") or {}, *SESSION)
