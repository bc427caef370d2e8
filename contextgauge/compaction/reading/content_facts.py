"""What a line contains, measured: calls of tools, their results and the user's turns (R35).

Sizes, estimates and hashes, and of words only the tools' names. A line whose texts a publisher left
out or shortened carries what was measured before, in a field of its own: of what is left of its
texts nothing is measured.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

from contextgauge.compaction.carried.file_ledger import uses_of
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.formats import read_answer, read_messages
from contextgauge.compaction.messages import Image, Message, Text, ToolCall, ToolResult
from contextgauge.compaction.reading.lines import (
    is_boundary,
    reduced_of_any,
)
from contextgauge.errors import ConfigError
from contextgauge.normalise.adapter import NO_TEXT, SHORTENED
from contextgauge.normalise.content_signals import ContentFact, ToolPart, TurnLength
from contextgauge.normalise.fields import count, flag, mapping, name
from contextgauge.normalise.responses import answer_of
from contextgauge.normalise.signals import Body
from contextgauge.records import Json

CONTENT_FIELD: Final = "contextgauge_content"
"""Field of a message without its texts: what was measured of them."""

_HASH_BYTES: Final = 16
_TOOL = re.compile(r"[\w.:/-]{1,128}", re.ASCII)
"""What a tool is called. A model may call anything: words are no name."""

_MOST_FACTS: Final = 256
_MOST_PATHS: Final = 8
"""Of a line and of a call; real ones have some. The rest is not measured."""


def content_facts(body: Body, key: bytes = b"") -> tuple[ContentFact, ...]:
    """Return what a line contains, in its order. Never raises.

    With a key (1 to 64 secret bytes) inputs and paths cannot be tried against the hashes by others.
    """
    if CONTENT_FIELD in body:
        return tuple(_stored(body[CONTENT_FIELD]))
    if NO_TEXT in body or SHORTENED in body:
        return ()
    facts: list[ContentFact] = []
    for message in _messages(body):
        facts += _of_message(message, key)
    return tuple(facts[:_MOST_FACTS])


def content_field(facts: Sequence[ContentFact]) -> list[Json]:
    """Return facts as the message's field has them; what is null is left out."""
    rows: list[Json] = []
    for fact in facts:
        row = {each: value for each, value in fact._asdict().items() if value not in (None, ())}
        if paths := row.get("path_hashes"):
            row["path_hashes"] = list(paths)
        rows.append(row)
    return rows


def _messages(body: Body) -> list[Message]:
    """Return what a line adds to its conversation; a runtime's summary is no turn of the user."""
    line = reduced_of_any(body)
    if line is None or is_boundary(line) or flag(line, "isCompactSummary"):
        return []
    message, payload = mapping(line, "message"), mapping(line, "payload")
    kind = line.get("type")
    try:
        if kind in ("user", "assistant") and message is not None:
            of_harness = flag(line, "isMeta") or flag(line, "isSynthetic")
            return read_messages([message], "anthropic", is_user_turn=False if of_harness else None)
        if kind == "response_item" and payload is not None:
            return read_messages([payload], "openai-responses")
        if (answer := answer_of(line)) is not None:
            return read_answer(answer.body, answer.format)
    except ConfigError:
        return []  # not what it seems: the conversation's readers report it
    return []


def _of_message(message: Message, key: bytes) -> Iterator[ContentFact]:
    for block in message.blocks:
        if isinstance(block, ToolCall):
            yield _call(block, key)
        elif isinstance(block, ToolResult):
            yield _result(block)
    if message.is_user_turn:
        text = message.user_text
        yield TurnLength(len(text), ESTIMATE.text(text))


def _call(call: ToolCall, key: bytes) -> ToolPart:
    uses = list(uses_of(call))
    paths = list(dict.fromkeys(path for path, _ in uses))[:_MOST_PATHS]
    return ToolPart(
        part="call",
        use_id=_short(call.id),
        tool=_tool(call.name),
        input_hash=_hash(call.arguments, key),
        path_hashes=tuple(_hash(path, key) for path in paths),
        changes=any(changed for _, changed in uses) if uses else None,
        bytes=_bytes(call.arguments),
        tokens=ESTIMATE.text(call.arguments),
        is_error=None,
    )


def _result(result: ToolResult) -> ToolPart:
    texts = [each.text for each in result.content if isinstance(each, Text)]
    images = sum(each.tokens for each in result.content if isinstance(each, Image))
    return ToolPart(
        part="result",
        use_id=_short(result.call_id),
        tool=_tool(result.name),
        input_hash=None,
        path_hashes=(),
        changes=None,
        bytes=sum(map(_bytes, texts)),
        tokens=sum(map(ESTIMATE.text, texts)) + images,
        is_error=result.is_error,
    )


def _short(text: str | None) -> str | None:
    """Return an id; what is too long for one is left out."""
    return name({"name": text}, "name")


def _tool(value: Json) -> str | None:
    return value if isinstance(value, str) and _TOOL.fullmatch(value) else None


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _hash(text: str, key: bytes) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=key, digest_size=_HASH_BYTES).hexdigest()


def _stored(value: Json) -> Iterator[ContentFact]:
    """Read a message's field; what has another shape is left out."""
    rows = value if isinstance(value, list) else []
    for row in rows[:_MOST_FACTS]:
        if not isinstance(row, dict):
            continue
        part, tokens = row.get("part"), count(row, "tokens")
        size, characters = count(row, "bytes"), count(row, "characters")
        if part in ("call", "result") and size is not None and tokens is not None:
            paths = row.get("path_hashes")
            yield ToolPart(
                part="call" if part == "call" else "result",
                use_id=name(row, "use_id"),
                tool=_tool(row.get("tool")),
                input_hash=name(row, "input_hash"),
                path_hashes=_names(paths if isinstance(paths, list) else []),
                changes=_truth(row.get("changes")),
                bytes=size,
                tokens=tokens,
                is_error=_truth(row.get("is_error")),
            )
        elif part is None and characters is not None and tokens is not None:
            yield TurnLength(characters, tokens)


def _names(values: Sequence[Json]) -> tuple[str, ...]:
    named = (name({"name": each}, "name") for each in values[:_MOST_PATHS])
    return tuple(each for each in named if each is not None)


def _truth(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None
