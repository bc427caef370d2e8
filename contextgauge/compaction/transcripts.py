"""The conversation of a file: what the model of a transcript, or the next call, would see.

Read are transcripts of Claude Code (JSON lines with a `message`), rollouts of Codex (JSON lines
with a `payload`), and JSON documents: a list of messages or a request body of any format.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from contextgauge.compaction.formats import detect, read_messages, read_request
from contextgauge.compaction.messages import FormatName, Request
from contextgauge.errors import ConfigError
from contextgauge.json_codec import loads
from contextgauge.records import Json


class ReadConversation(NamedTuple):
    """A file's conversation, its format, and how to write other messages in the file's form."""

    request: Request
    format: FormatName
    rewrite: Callable[[list[Json]], Json]


def read_conversation(value: bytes) -> ReadConversation:
    """Read the active conversation of a file's bytes. Raises ConfigError where there is none."""
    document = _document(value)
    if document is not None:
        return _of_document(document)
    items: list[Json] = []
    formats: set[FormatName] = set()
    for line in _objects(value):
        _read_line(line, items, formats)
    if not items:
        raise ConfigError(
            "no conversation: expected a transcript of Claude Code or Codex, a JSON list of "
            "messages, or the body of a request"
        )
    if len(formats) > 1:
        raise ConfigError("lines of Claude Code and of Codex in one file: give one transcript")
    name = formats.pop()
    return ReadConversation(Request(read_messages(items, name)), name, lambda items: items)


def _document(value: bytes) -> Json:
    try:
        document = loads(value)
    except ValueError:
        return None
    if isinstance(document, dict) and ("type" in document or "role" in document):
        return [document] if "role" in document else None
    return document


def _of_document(document: Json) -> ReadConversation:
    name = detect(document)
    if name is None:
        raise ConfigError(
            "the JSON is no conversation: expected a list of messages, or the body of a request "
            "with `messages`, `input` or `contents`"
        )
    if isinstance(document, list):
        return ReadConversation(Request(read_messages(document, name)), name, lambda items: items)
    if not isinstance(document, dict):
        raise ConfigError("the JSON is no conversation: expected a list or an object")
    field = next(each for each in ("messages", "input", "contents") if each in document)
    return ReadConversation(
        read_request(document, name), name, lambda items: {**document, field: items}
    )


def _objects(value: bytes) -> Iterator[Mapping[str, Json]]:
    for line in value.splitlines():
        try:
            each = loads(line) if line.strip() else None
        except ValueError:
            continue
        if isinstance(each, dict):
            yield each


def _read_line(line: Mapping[str, Json], items: list[Json], formats: set[FormatName]) -> None:
    """Add what a line contributes; a compaction empties what came before it."""
    payload = line.get("payload")
    if line.get("type") == "response_item" and isinstance(payload, dict):
        formats.add("openai-responses")
        items.append(payload)
    elif line.get("type") == "compacted" and isinstance(payload, dict):
        replacement = payload.get("replacement_history")
        items[:] = replacement if isinstance(replacement, list) else []
        if not items and isinstance(text := payload.get("message"), str) and text:
            items.append({"role": "user", "content": text})
    elif line.get("subtype") == "compact_boundary" and not line.get("isSidechain"):
        items.clear()
    elif line.get("type") in {"user", "assistant"} and not line.get("isSidechain"):
        message = line.get("message")
        if isinstance(message, dict) and line.get("parent_tool_use_id") is None:
            formats.add("anthropic")
            items.append(message)
