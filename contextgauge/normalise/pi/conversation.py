"""What the entries of a pi session hold of a conversation, and of what a person typed."""

from contextgauge.normalise.fields import count, flag, items, mapping, name, text
from contextgauge.normalise.pi.entries import usage_of
from contextgauge.normalise.responses import text_of
from contextgauge.normalise.signals import Body
from contextgauge.normalise.usage import anthropic_usage
from contextgauge.records import Json


def linked(entry: Body) -> dict[str, Json]:
    """Reduce an entry that the model does not see to its place among the others."""
    if name(entry, "id") is None:
        return {}
    return {"uuid": entry["id"], "parentUuid": entry.get("parentId")}


def reset(entry: Body) -> dict[str, Json]:
    """Reduce an entry that says that the conversation was cleared."""
    return {"type": "conversation_reset", **linked(entry)}


def session(_: Body) -> dict[str, Json]:
    """Reduce a session's head: its folder is all that is needed."""
    return {}


def message(entry: Body) -> dict[str, Json] | None:
    """Reduce a message to one of Claude Code's form."""
    own = mapping(entry, "message") or {}
    content = _content_of(own.get("content"))
    match own.get("role"):
        case "assistant":
            usage = mapping(own, "usage") or {}
            answer: dict[str, Json] = {"role": "assistant", "content": content}
            answer |= anthropic_usage(usage_of(usage), count(usage, "output"))
            if (model := name(own, "model")) is not None:
                answer["model"] = model
            return {"type": "assistant", "message": answer, **linked(entry)}
        case "user":
            return _of_user(entry, content)
        case "toolResult":
            result: dict[str, Json] = {
                "type": "tool_result",
                "tool_use_id": own.get("toolCallId"),
                "content": content,
                "is_error": flag(own, "isError"),
            }
            return _of_user(entry, [result])
        case "bashExecution" if not flag(own, "excludeFromContext"):
            ran = f"Ran `{text(own, 'command') or ''}`\n\n{text(own, 'output') or ''}"
            return {**_of_user(entry, ran), "isMeta": True}
        case "bashExecution":
            return linked(entry)
    return {**_of_user(entry, content), "isMeta": True}


def custom_message(entry: Body) -> dict[str, Json]:
    """Reduce what an extension adds, which the model sees as the user's."""
    return {**_of_user(entry, _content_of(entry.get("content"))), "isMeta": True}


def branch_summary(entry: Body) -> dict[str, Json]:
    """Reduce the summary of a branch that was left."""
    return {**_of_user(entry, text(entry, "summary") or ""), "isMeta": True}


def compaction(entry: Body) -> dict[str, Json]:
    """Reduce a compaction to a boundary with its summary, and what it preserved."""
    summary: Json = {"role": "user", "content": text(entry, "summary") or ""}
    own: dict[str, Json] = {"type": "system", "subtype": "compact_boundary", "message": summary}
    metadata: dict[str, Json] = {}
    if (before := count(entry, "tokensBefore")) is not None:
        metadata["pre_tokens"] = before
    first, last = name(entry, "firstKeptEntryId"), name(entry, "parentId")
    if first is None and items(entry, "retainedTail"):
        first = last = name(entry, "id")  # messages which are not those before it, word for word
    if first is not None and last is not None:
        segment: Json = {"head_uuid": first, "tail_uuid": last, "anchor_uuid": entry.get("id")}
        metadata["preserved_segment"] = segment
    return {**own, "compact_metadata": metadata, **linked(entry)}


def prompt(entry: Body) -> Json:
    """Return the content of a person's message."""
    own = mapping(entry, "message") or {}
    return own.get("content") if own.get("role") == "user" else None


def _of_user(entry: Body, content: Json) -> dict[str, Json]:
    return {"type": "user", "message": {"role": "user", "content": content}, **linked(entry)}


def _content_of(content: Json) -> Json:
    if not isinstance(content, list):
        return text_of(content) or ""
    return [_block_of(each) for each in content if isinstance(each, dict)]


def _block_of(block: Body) -> Json:
    match block.get("type"):
        case "toolCall":
            call: dict[str, Json] = {"type": "tool_use", "input": block.get("arguments")}
            return {**call, "id": block.get("id"), "name": block.get("name")}
        case "thinking":
            thought: dict[str, Json] = {"type": "thinking", "thinking": block.get("thinking")}
            return {**thought, "signature": block.get("thinkingSignature")}
        case "image":
            source = {"media_type": block.get("mimeType"), "data": block.get("data")}
            return {"type": "image", "source": {"type": "base64", **source}}
    return {"type": block.get("type"), "text": block.get("text")}
