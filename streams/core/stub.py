"""Shortening of over-long messages: the largest content gives way to a marked stub.

What derivation reads stays: identity, session, type, model, usage, metadata, times. `publish`
and `replay` shorten alike, so both give the same records (golden property 5). A message with a
`uuid` keeps its cause; one without has the hash of the shortened line for it, which differs for
different originals since the mark holds the original's own hash.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from schemas.records import Json

MARK = "contextgauge_shortened"
"""Field that a shortened message carries: the original's size in bytes and SHA-256 (hex)."""

KEPT_CHARACTERS = 256
"""Beginning of a replaced text that stays: command tags stand there (R23, R27)."""

SMALLEST_TEXT_BYTES = 1024
"""A shorter text is not replaced: its stub would save little."""

Dump: TypeAlias = Callable[[Json], bytes]

_WRAPPERS = frozenset({"message", "event", "payload", "response", "request", "input"})
"""Objects that derivation looks into, where nothing but such objects is around them."""

_KEPT_FIELDS = frozenset(
    {
        "uuid", "parentUuid", "parent_uuid", "logicalParentUuid", "logical_parent_uuid",
        "session_id", "sessionId", "id", "requestId", "request_id", "agentId", "agent_id",
        "parent_tool_use_id", "parentToolUseId", "task_id", "subagent_type", "subagentType",
        "type", "subtype", "object", "role", "status", "model", "modelVersion", "model_version",
        "timestamp", "version", "claude_code_version", "cli_version", "runtime", "cwd",
        "usage", "modelUsage", "model_usage", "usageMetadata", "usage_metadata", "info",
        "compact_metadata", "compactMetadata", "microcompactMetadata", "microcompact_metadata",
        "context_management", "context_usage", "contextUsage", "autocompact_state",
        "autocompactState", "categories", "terminal_reason", "terminalReason", "compact_result",
        "compact_error", "fallback_model", "fallbackModel", "trigger", "hook_event_name",
        "hook_event", "hook_name", "forked_from", "forkedFrom", "forked_from_id", MARK,
    }
)  # fmt: skip
"""Fields of the message and its wrappers that stay whole: derivation reads them."""


@dataclass(slots=True)
class _Node:
    """A value in the copy. `holder[step]` is where it stands; `size` is its length as JSON."""

    parent: "_Node | None"
    holder: dict[str, Json] | list[Json]
    step: str | int
    value: Json
    size: int
    replaceable: bool
    is_wrapper: bool = False
    gone: bool = False


def shorten(
    body: Mapping[str, Json], original: bytes, limit: int, dump: Dump
) -> dict[str, Json] | None:
    """Return the message with stubs, so that `dump` gives at most `limit` bytes; None: it cannot.

    Texts go first, the largest before the others; then lists and objects, the smallest that is
    enough by itself, else the largest. `original` is the line as it came.
    """
    mark: Json = {"bytes": len(original), "sha256": hashlib.sha256(original).hexdigest()}
    nodes = _copied({**body, MARK: mark}, dump)
    root = nodes[0]
    texts = [node for node in nodes if node.replaceable and isinstance(node.value, str)]
    for node in sorted(texts, key=lambda text: -text.size):
        if root.size <= limit or node.size < SMALLEST_TEXT_BYTES:
            break
        _replace(node, dump)
    branches = [node for node in nodes if node.replaceable and isinstance(node.value, dict | list)]
    while root.size > limit and (branches := [node for node in branches if not _is_gone(node)]):
        # A stub takes some room too, so what is just the excess is not quite enough.
        excess = root.size - limit + 2 * SMALLEST_TEXT_BYTES
        enough = [node for node in branches if node.size >= excess]
        largest = max(branches, key=lambda node: node.size)
        _replace(min(enough, key=lambda node: node.size) if enough else largest, dump)
    # Measured once more: a serialiser may spell a number differently in company.
    fits = root.size <= limit and len(dump(root.value)) <= limit
    return root.value if fits and isinstance(root.value, dict) else None


def _copied(body: dict[str, Json], dump: Dump) -> list[_Node]:
    """Return the nodes of a copy, parents before children, the copy itself first."""
    root = _Node(None, [], 0, dict(body), 0, replaceable=False, is_wrapper=True)
    nodes = [root]
    for node in nodes:
        holder = node.value
        if not isinstance(holder, dict | list):
            continue
        for step, value in _children(holder):
            child = _Node(node, holder, step, value, 0, replaceable=node.replaceable)
            if node.is_wrapper:
                child.is_wrapper = step in _WRAPPERS and isinstance(value, dict)
                child.replaceable = not child.is_wrapper and step not in _KEPT_FIELDS
            if isinstance(value, dict):
                child.value = _put(holder, step, dict(value))
            elif isinstance(value, list):
                child.value = _put(holder, step, list(value))
            nodes.append(child)
    for node in reversed(nodes):
        node.size += _own_size(node.value, dump)
        if node.parent is not None:
            node.parent.size += node.size
    return nodes


def _children(holder: dict[str, Json] | list[Json]) -> Iterator[tuple[str | int, Json]]:
    """Yield steps and values; a list of them, since the copying puts new values in their place."""
    if isinstance(holder, dict):
        yield from list(holder.items())
    else:
        yield from list(enumerate(holder))


def _put(holder: dict[str, Json] | list[Json], step: str | int, value: Json) -> Json:
    cast("dict[str | int, Json]", holder)[step] = value
    return value


def _own_size(value: Json, dump: Dump) -> int:
    """Return the JSON length of a value without its children."""
    if isinstance(value, dict):
        return 2 + max(len(value) - 1, 0) + sum(len(dump(key)) + 1 for key in value)
    if isinstance(value, list):
        return 2 + max(len(value) - 1, 0)
    return len(dump(value))


def _is_gone(node: _Node) -> bool:
    at: _Node | None = node
    while at is not None:
        if at.gone:
            return True
        at = at.parent
    return False


def _replace(node: _Node, dump: Dump) -> None:
    """Put a stub in the node's place, and correct the sizes of all around it."""
    if isinstance(node.value, str):
        content = node.value.encode("utf-8", "surrogatepass")
        begin = node.value[:KEPT_CHARACTERS]
    else:
        content, begin = dump(node.value), ""
    digest = hashlib.sha256(content).hexdigest()
    stub = f"{begin}[contextgauge: {len(content)} bytes left out, sha256 {digest}]"
    node.value = _put(node.holder, node.step, stub)
    node.gone = True
    saved = node.size - len(dump(stub))
    at: _Node | None = node
    while at is not None:
        at.size -= saved
        at = at.parent
