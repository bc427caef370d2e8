"""What an event of Copilot CLI says (github/copilot-sdk, `session-events`).

A size is that of the whole context: system message, conversation and definitions of tools. After a
compaction the runtime names the conversation alone, so the three are added up.
"""

from typing import Final

from contextgauge.normalise.fields import count, long_name, mapping, name, text, truth, window
from contextgauge.normalise.limit_signals import ContextUsage, ModelReport, OwnWindow
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    CompactionRefused,
    CompactionStatus,
    MicroCompaction,
    Reset,
    Response,
    ResponseEnd,
    SessionFacts,
    Signal,
    TriggerHint,
    Usage,
    UserLine,
)
from contextgauge.normalise.usage import read_inside, summary_cost
from contextgauge.record_words import Trigger
from contextgauge.records import Category

_PARTS: Final = (
    ("systemTokens", "System prompt"),
    ("toolDefinitionsTokens", "Tool definitions"),
    ("conversationTokens", "Messages"),
)

_FIGURES: Final = (
    "preCompactionTokens",
    "preCompactionMessagesLength",
    "postCompactionTokens",
    "tokensRemoved",
    "messagesRemoved",
    "checkpointNumber",
    "tokenLimit",
    *(each for each, _ in _PARTS),
)
"""What a boundary keeps of a compaction's event, next to its trigger."""

TRUNCATION_FIGURES: Final = (
    "preTruncationTokensInMessages",
    "postTruncationTokensInMessages",
    "preTruncationMessagesLength",
    "postTruncationMessagesLength",
    "tokensRemovedDuringTruncation",
    "messagesRemovedDuringTruncation",
)


def _payload(body: Body) -> Body:
    return mapping(body, "data") or {}


def _is_of_side(body: Body, payload: Body) -> bool:
    """Return whether an event is a subagent's; older versions name only the tool's call."""
    return name(body, "agentId") is not None or name(payload, "parentToolCallId") is not None


def start(body: Body) -> tuple[Signal, ...]:
    """Return the facts of a session, and its model."""
    payload = _payload(body)
    return _facts(
        payload,
        mapping(payload, "context") or {},
        name(payload, "copilotVersion"),
        long_name(payload, "detachedFromSpawningParentSessionId"),
    )


def resume(body: Body) -> tuple[Signal, ...]:
    """Return the facts of a session that goes on."""
    payload = _payload(body)
    return _facts(payload, mapping(payload, "context") or {})


def context_changed(body: Body) -> tuple[Signal, ...]:
    """Return the folder that a session went to."""
    return _facts({}, _payload(body))


def _facts(
    payload: Body, context: Body, version: str | None = None, forked: str | None = None
) -> tuple[Signal, ...]:
    model, cwd = name(payload, "selectedModel"), long_name(context, "cwd")
    facts = SessionFacts("copilot-cli", version, model, cwd, forked, only_new=False)
    return (facts,) if model is None else (facts, ModelReport(model, is_init=False))


def model_change(body: Body) -> tuple[Signal, ...]:
    """Return the model that was selected."""
    model = name(_payload(body), "newModel")
    return () if model is None else (ModelReport(model, is_init=False),)


def cleared(_: Body) -> tuple[Signal, ...]:
    """Return that the conversation was cleared."""
    return (Reset("clear"),)


def prompt(body: Body) -> tuple[Signal, ...]:
    """Return the user line that a person's message is; what has a source is the runtime's."""
    payload = _payload(body)
    if _is_of_side(body, payload) or text(payload, "source") not in (None, "user"):
        return ()
    return (UserLine(counted=True, mark=None, uuid=None, text=None),)


def message(body: Body) -> tuple[Signal, ...]:
    """Return the response that a message of the model belongs to; its size is not reported."""
    payload = _payload(body)
    if name(body, "agentId") is None and _is_of_side(body, payload):
        return ()
    return (_response(payload, None),)


def usage(body: Body) -> tuple[Signal, ...]:
    """Return the size of a response, which only the SDK gets."""
    payload = _payload(body)
    if name(body, "agentId") is None and _is_of_side(body, payload):
        return ()
    counts = read_inside(
        count(payload, "inputTokens"),
        count(payload, "cacheReadTokens"),
        count(payload, "cacheWriteTokens"),
    )
    return () if counts is None else (_response(payload, counts),)


def _response(payload: Body, counts: Usage | None) -> Response:
    key, output = name(payload, "apiCallId", "messageId"), count(payload, "outputTokens")
    model = name(payload, "model")
    return Response(key, key, model, counts, output, (), exhausted=False, boundary=None)


def usage_info(body: Body) -> tuple[Signal, ...]:
    """Return the window that the SDK gets, and what fills it; sizes come with each response."""
    return () if name(body, "agentId") is not None else _account(_payload(body))


def shutdown(body: Body) -> tuple[Signal, ...]:
    """Return the size at the end of a run, which is that after its last response."""
    payload = _payload(body)
    return (*_account(payload), *_size(payload))


def compaction_start(body: Body) -> tuple[Signal, ...]:
    """Return the size before a compaction, and that it began."""
    payload = _payload(body)
    trigger = _trigger(payload)
    signals: list[Signal] = [*_account(payload), *_size(payload)]
    if trigger is not None:
        signals.append(TriggerHint(trigger))
    if name(body, "agentId") is not None:
        return _size(payload)
    return (*signals, CompactionStatus("COMPACTING"))


def compaction_complete(body: Body) -> tuple[Signal, ...]:
    """Return the boundary, or that the compaction failed."""
    payload = _payload(body)
    if truth(payload, "success") is not True:
        return (CompactionRefused(text(payload, "error"), blocked=False),)
    figures = {each: payload[each] for each in (*_FIGURES, "trigger") if each in payload}
    cost = mapping(payload, "compactionTokensUsed") or {}
    counts = read_inside(
        count(cost, "inputTokens", "input"),
        count(cost, "cacheReadTokens", "cachedInput"),
        count(cost, "cacheWriteTokens"),
    )
    boundary = Boundary(
        trigger=_trigger(payload),
        pre_tokens=count(payload, "preCompactionTokens"),
        post_tokens=_whole(payload),
        duration_ms=None,
        anchor=None,
        metadata=figures,
        summary=text(payload, "summaryContent"),
        receipt=summary_cost(counts, count(cost, "outputTokens", "output")),
    )
    return (boundary,)


def truncation(body: Body) -> tuple[Signal, ...]:
    """Return the window, and that the oldest messages were removed.

    Older versions write one for each request, which says that nothing had to be removed.
    """
    payload = _payload(body)
    metadata: Body = {each: payload[each] for each in TRUNCATION_FIGURES if each in payload}
    removed = count(payload, "tokensRemovedDuringTruncation")
    own = _window(payload) if name(body, "agentId") is None else ()
    if removed == 0 and not count(payload, "messagesRemovedDuringTruncation"):
        return own
    return (*own, MicroCompaction(metadata, removed))


def _trigger(payload: Body) -> Trigger | None:
    trigger = text(payload, "trigger")
    if trigger is None:
        return None
    return "manual" if trigger == "manual" else "auto"


def _whole(payload: Body) -> int | None:
    """Return the size of the whole context: as it is named, else all of its parts."""
    whole = count(payload, "currentTokens")
    if whole is not None:
        return whole
    parts = [count(payload, each) for each, _ in _PARTS]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _size(payload: Body) -> tuple[Signal, ...]:
    whole = _whole(payload)
    if not whole:
        return ()
    return (ResponseEnd(None, (), exhausted=False, usage=Usage(whole, None, None)),)


def _window(payload: Body) -> tuple[Signal, ...]:
    limit = window(payload, "tokenLimit")
    return () if limit is None else (OwnWindow(limit),)


def _account(payload: Body) -> tuple[Signal, ...]:
    """Return the window, and what fills it."""
    categories = tuple(
        Category(id=each, name=label, kind=None, tokens=count(payload, each))
        for each, label in _PARTS
        if count(payload, each) is not None
    )
    if not categories:
        return _window(payload)
    whole = ContextUsage(None, _whole(payload), None, categories, None)
    return (*_window(payload), whole)
