"""Any inbound spelling or provider to one small union of signals.

The only place that knows runtimes and providers: each has a folder here, whose adapter declares
all that is particular of it (`adapter.py`), and `runtimes.py` finds and joins them. `normalise` is
total: whatever object comes, it answers with the message's signals, or with None where the message
says nothing that could change any record, now or later (R4).
"""

import hashlib
from typing import Final

from contextgauge.normalise import session_facts
from contextgauge.normalise.adapter import LineType
from contextgauge.normalise.claude_code.messages import COUNTED_LINE
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
from contextgauge.normalise.runtimes import ADAPTERS, OWN_CALL_PREFIXES, OWN_CALLS, line_of
from contextgauge.normalise.signals import (
    Body,
    CompactionRefused,
    CompactionStatus,
    ContentFact,
    InputMessage,
    Normal,
    Response,
    ResponseEnd,
    SessionFacts,
    Signal,
    Usage,
)
from contextgauge.normalise.spellings import COMMON, TRANSCRIPT_FIELDS, is_telemetry
from contextgauge.normalise.usage import tier_of
from contextgauge.normalise.usual import (
    USUAL_RESPONSE,
    USUAL_RESPONSE_END,
    USUAL_USER,
    UsualMessage,
)
from contextgauge.records import Json

_USUAL_RUNTIME: Final = next(each.runtime for each in ADAPTERS if each.is_borrowed)
"""The only one whose lines `fast_path.pyx` reads: others borrowed their form."""

_OF_ATTEMPTS: Final = (CompactionStatus, CompactionRefused)
"""A status that is marked as a subagent's moves nothing (R15)."""

_SPELLINGS: Final = {each.spelling for each in ADAPTERS}
_SELDOM: Final = frozenset({"parentToolUseId", "task_id"}).union(
    TRANSCRIPT_FIELDS,
    *(names for each in _SPELLINGS for names in (each.agent, each.subagent_type, each.sidechain)),
    *(each.parent for each in _SPELLINGS if each is not COMMON),
)
"""Fields of a subagent or a transcript: most frames of a stream have none, which one look shows."""


def normalise(
    body: Body, message: InputMessage, content: tuple[ContentFact, ...] = ()
) -> Normal | None:
    """Return what the message says, or None where it is ignorable. Never raises.

    `body` is its object, parsed; `content` what was measured of it, where that is asked for (R35).
    """
    line = line_of(body)
    spelling = line.spelling
    signals = line.read(body)
    thread_id = message.thread_id or (line.thread(body) if line.thread is not None else None)
    if body.keys().isdisjoint(_SELDOM) and thread_id is None:
        if not signals and not content:
            return None
        agent_id = subagent_type = task_id = None
        sidechain = False
        parent_id = name(body, "parent_tool_use_id")
    else:
        agent_id = name(body, *spelling.agent)
        parent_id = name(body, *spelling.parent)
        sidechain = flag(body, *spelling.sidechain)
        subagent_type = name(body, *spelling.subagent_type)
        task_id = name(body, "task_id")
        if thread_id is not None and not sidechain and parent_id is None:
            agent_id, sidechain = _short(thread_id, MAX_NAME), True
            subagent_type = None if line.head is None else line.head(body).subagent_type
            signals = tuple(map(_of_subagent, signals))
        if not _reports_facts(signals):
            only_new = sidechain or parent_id is not None or not signals
            signals = (*session_facts.transcript_facts(body, only_new=only_new), *signals)
        if parent_id is None and _is_own_call(agent_id, sidechain=sidechain):
            signals, content = _of_own_call(agent_id or "", body), ()
    if sidechain or parent_id is not None:
        signals = tuple(signal for signal in signals if not isinstance(signal, _OF_ATTEMPTS))
    if not signals and not content:
        return None
    agent, settings = _short(message.publisher_agent_id, MAX_NAME), message.settings
    if signals and (agent or settings is not None):
        only_new = sidechain or parent_id is not None
        signals = _of_publisher(signals, agent, settings, only_new=only_new)
    own_ms = moment_ms(body.get("timestamp"))
    if own_ms is None and line.moment is not None:
        own_ms = line.moment(body)
    return Normal(
        _session_of(line, body, message.session_hint),
        name(body, "uuid") or _cause(line, body, message),
        own_ms,
        None if message.received_ms is None else in_range(message.received_ms),
        agent_id,
        parent_id,
        sidechain,
        subagent_type,
        _short(message.task_id, MAX_NAME) or task_id,
        signals,
        session_facts.is_copy(body) or message.inherited,
        None if line.turn_ms is None else line.turn_ms(body),
        count(body, "ordinal"),
        is_telemetry=is_telemetry(body),
        content=content,
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
        signals = COUNTED_LINE
    elif kind == USUAL_RESPONSE:
        key = usual.response_id
        tier = tier_of(usual.tier, usual.speed)
        usage = Usage(usual.input, usual.creation, usual.read, usual.creation_1h, tier)
        output = usual.output if is_transcript else None
        signals = (
            Response(
                key,
                key,
                usual.model,
                usage,
                output,
                (),
                exhausted=False,
                boundary=None,
                request_id=usual.request_id,
            ),
        )
    elif kind == USUAL_RESPONSE_END:
        tier = tier_of(usual.tier, usual.speed)
        counts = Usage(usual.input, usual.creation, usual.read, usual.creation_1h, tier)
        measured = counts if counts.used else None
        signals = (ResponseEnd(usual.output, (), exhausted=False, usage=measured),)
    if is_transcript:
        only_new = sidechain or parent_id is not None or not signals
        version = usual.version
        runtime = None if version is None else _USUAL_RUNTIME
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
    return sidechain and agent_id is not None and agent_id.startswith(OWN_CALL_PREFIXES)


def _of_own_call(agent_id: str, body: Body) -> tuple[Signal, ...]:
    (read,) = (each.read for each in OWN_CALLS if agent_id.startswith(each.prefix))
    return read(agent_id, body)


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


def _cause(line: LineType, body: Body, message: InputMessage) -> str:
    """Return what identifies a message without a uuid; two threads may have equal lines."""
    own = None if line.cause is None else line.cause(body)
    if own is not None:
        return own
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
    return _session_of(line_of(body), body, hint)


def _session_of(line: LineType, body: Body, hint: str | None) -> str | None:
    names = line.spelling.session
    own = long_name(body, *names)
    if own is None and line.session is not None:
        own = line.session(body)
    if own is not None:
        return own
    if text(body, *names) is not None:
        return None
    if (hinted := _short(hint, MAX_LONG_NAME)) is not None:
        return hinted
    if line.head is not None:
        return _short(line.head(body).session, MAX_LONG_NAME)
    request = mapping(body, "request") or {}
    return long_name(mapping(request, "input") or {}, *COMMON.session)


def named_session(body: Body) -> str | None:
    """Return the session that a message names itself, however long its id is."""
    line = line_of(body)
    own = text(body, *line.spelling.session)
    return line.session(body) if own is None and line.session is not None else own
