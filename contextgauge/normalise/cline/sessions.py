"""What the messages of a Cline session say, as version 4 and its CLI keep them.

The messages are a document, with what each answer of the model cost. What the model sees of them
after a compaction stands in another one next to it, of the last compaction alone: how many messages
it covers shows where it took place.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from contextgauge.json_codec import dumps
from contextgauge.normalise.cline.tasks import MAKERS
from contextgauge.normalise.fields import (
    count,
    flag,
    in_range,
    items,
    long_name,
    mapping,
    name,
    text,
)
from contextgauge.normalise.served_models import served_model
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    Response,
    SessionFacts,
    Signal,
    Usage,
    UserLine,
)
from contextgauge.normalise.usage import anthropic_usage, read_inside
from contextgauge.record_words import Trigger
from contextgauge.records import Json

_OF_SUBAGENT: Final = "__"
"""Between the ids of a session and of its subagent, in the name of that one's session."""

COVERED: Final = "source_message_count"
_KINDS: Final = ("compaction_summary", "compaction")
_TRIGGERS: Final[dict[str | None, Trigger]] = {
    "manual_compaction": "manual",
    "auto_compaction": "auto",
    "overflow_recovery_compaction": "auto",
}


def lines(session: Body, others: Sequence[Sequence[Body]]) -> Iterator[Body]:
    """Yield the head, the messages, and the last compaction where it took place."""
    manifests, compactions = others
    named: Body = {"version": 1, "agent": session.get("agent")}
    own: Body = {"sessionId": session.get("sessionId")}
    owner, _, thread = (text(session, "sessionId") or "").partition(_OF_SUBAGENT)
    if thread and session.get("agent") != "lead":
        own = {"sessionId": owner, "agentId": thread, "isSidechain": True}
    head = {**named, **own}
    for each in manifests:
        head |= {field: each[field] for field in ("cwd", "started_at") if field in each}
    yield head
    covered = None
    boundary: Body = {}
    for each in compactions:
        covered = count(each, COVERED)
        boundary = {field: value for field, value in each.items() if field != "messages"}
        first = (message for message in items(each, "messages") if _kind_of(message) in _KINDS)
        boundary["messages"] = list(islice(first, 1))
    messages = items(session, "messages")
    for number, message in enumerate(messages):
        if number == covered:
            yield {**boundary, **own}
        yield {**message, **own}
    if covered is not None and covered >= len(messages):
        yield {**boundary, **own}


def facts(body: Body) -> tuple[Signal, ...]:
    """Return what a head says."""
    return (SessionFacts("cline", None, None, long_name(body, "cwd"), None, only_new=True),)


def moment(body: Body) -> int | None:
    """Return the time of a message."""
    time_ms = count(body, "ts")
    return None if time_ms is None else in_range(time_ms)


def cause(body: Body) -> str | None:
    """Return what identifies a message: it may be written again with other fields."""
    return name(body, "id") if body.get("role") == "user" else None


def message(body: Body) -> tuple[Signal, ...]:
    """Return the response that an answer is, or the user line that another message is."""
    if body.get("role") != "assistant":
        counted = _kind_of(body) is None
        return (UserLine(counted=True, mark=None, uuid=None, text=None),) if counted else ()
    model, metrics = mapping(body, "modelInfo") or {}, mapping(body, "metrics") or {}
    model_id = served_model(name(model, "id"), name(model, "provider"), MAKERS)
    key, output = name(body, "id"), count(metrics, "outputTokens")
    usage = usage_of(metrics)
    return (Response(key, key, model_id, usage, output, (), exhausted=False, boundary=None),)


def usage_of(metrics: Body) -> Usage | None:
    """Return the counts of an answer, whose input includes what was cached.

    With some handlers of VS Code it does not: then more is cached than was sent.
    """
    sent = count(metrics, "inputTokens")
    creation, read = count(metrics, "cacheWriteTokens"), count(metrics, "cacheReadTokens")
    if not any((sent, creation, read)):
        return None
    if (creation or 0) + (read or 0) > (sent or 0):
        return Usage(sent, creation, read)
    return read_inside(sent, read, creation)


def compaction(body: Body) -> tuple[Signal, ...]:
    """Return the boundary that a compaction is; the sizes that it names are estimates."""
    summary: Body = {}
    for each in items(body, "messages"):
        summary = mapping(each, "metadata") or {}
    trigger = _TRIGGERS.get(name(summary, "reason"))
    metadata: dict[str, Json] = {
        each: summary[each] for each in ("kind", "messagesRemoved") if each in summary
    }
    written = text(summary, "summary")
    return (Boundary(trigger, None, None, None, None, metadata, written),)


def compacted_when(body: Body) -> int | None:
    """Return when a compaction took place."""
    times = (
        count(mapping(each, "metadata") or {}, "generatedAt") for each in items(body, "messages")
    )
    time_ms = next(times, None)
    return None if time_ms is None else in_range(time_ms)


def _kind_of(body: Body) -> str | None:
    return name(mapping(body, "metadata") or {}, "kind")


def prompt(body: Body) -> Json:
    """Return what a person wrote."""
    return body.get("content") if body.get("role") == "user" and _kind_of(body) is None else None


def conversation(body: Body) -> dict[str, Json]:
    """Reduce a message: its blocks are those of Anthropic, but for files that were attached."""
    role, content = body.get("role"), body.get("content")
    if isinstance(content, list):
        content = list(map(_block_of, items(body, "content")))
    own: dict[str, Json] = {"role": role, "content": content}
    if role == "assistant":
        usage = usage_of(mapping(body, "metrics") or {})
        own |= anthropic_usage(usage, count(mapping(body, "metrics") or {}, "outputTokens"))
        model = name(mapping(body, "modelInfo") or {}, "id")
        own |= {} if model is None else {"model": model}
        own["id"] = body.get("id")
    own_line: dict[str, Json] = {"type": role, "message": own, "uuid": body.get("id")}
    return own_line if _kind_of(body) is None else {**own_line, "isMeta": True}


def _block_of(block: Body) -> Json:
    match block.get("type"):
        case "file":
            file = f"{text(block, 'path') or ''}\n{text(block, 'content') or ''}"
            return {"type": "text", "text": file}
        case "image" if "source" not in block:
            source = {"media_type": block.get("mediaType"), "data": block.get("data")}
            return {"type": "image", "source": {"type": "base64", **source}}
        case "tool_result":
            content = block.get("content")
            if isinstance(content, list):
                content = [_result_of(each) for each in items(block, "content")]
            own: Body = {"type": "tool_result", "tool_use_id": block.get("tool_use_id")}
            return {**own, "content": content, "is_error": flag(block, "is_error")}
    return block


def _result_of(part: Body) -> Json:
    """Return a part of a result; what a tool reports of several calls is an object for each."""
    if isinstance(part.get("type"), str):
        return _block_of(part)
    return {"type": "text", "text": text(part, "result") or dumps(part).decode()}


def summary(body: Body) -> dict[str, Json] | None:
    """Reduce a compaction to a boundary with its summary; which messages it kept is not known."""
    first = next(iter(items(body, "messages")), None)
    if first is None:
        return None
    message: Json = {"role": "user", "content": first.get("content")}
    return {"type": "system", "subtype": "compact_boundary", "message": message}
