"""The figures at the end of a transcript, where that is so plain that nothing needs deriving.

Nearly always the last response of the main chain, or a boundary behind it, tells the size. This
looks at no more than that. Whatever could be meant otherwise by the rules (a repeated response,
iterations, a reset, another session's line, a limit that is told, …) is not plain: then None is
returned, and the derivation reads the same lines. So no rule is decided here, and nothing is
imported that takes long.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from streams.edge.files.transcript_tail import BodyLine, Tail
from streams.serve.statusline.figures import Figures

_IGNORABLE = frozenset(
    {"progress", "summary", "file-history-snapshot", "queue-operation", "attachment"}
)
"""Types of lines that say nothing of a size, whatever is in them."""

_PARTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

_OF_SUBAGENTS = ("agentId", "agent_id", "parentToolUseId", "parent_tool_use_id", "is_sidechain")

_MAX_COUNT = 2**53 - 1


class _NotPlainError(Exception):
    """Something is there that the derivation must read."""


class PlainEnd(NamedTuple):
    """What a tail tells but for the window; `largest_tokens`: the largest size in it."""

    figures: Figures
    largest_tokens: int


def plain_end(tail: Tail, session_id: str) -> PlainEnd | None:
    """Return what a tail tells; None where it is not plain."""
    try:
        main = [line.body for line in tail.lines if _is_of_main(line.body, session_id)]
        used, model = _size(main)
        largest = max(_response(body)[1] for body in main)
        last_ms = _time_ms(main[-1])
        durations = _compactions([*tail.older, *tail.lines], session_id)
    except _NotPlainError:
        return None
    figures = Figures(
        model=model,
        state="unknown" if used is None else "measured",
        used_tokens=used,
        compactions=len(durations),
        all_compactions_seen=tail.has_all_older,
        last_duration_ms=durations[-1] if durations else None,
        last_ms=last_ms,
    )
    return PlainEnd(figures, largest)


def _size(main: Sequence[dict[str, Any]]) -> tuple[int | None, str | None]:
    """Return the size and the model that the last line of the main chain tells; None: unknown."""
    uuids = [body.get("uuid") for body in main]
    if not main or None in uuids or len({str(uuid) for uuid in uuids}) < len(uuids):
        raise _NotPlainError  # nothing, or a line that is there again
    last = main[-1]
    if last["type"] == "system":
        return None, next((_model(body) for body in reversed(main[:-1]) if _model(body)), None)
    own, size, model = _response(last)
    keys = [_response(body)[0] for body in main[:-1]]
    while keys and keys[-1] == own:
        keys.pop()
    if own in keys:
        raise _NotPlainError  # a response that comes again behind another one is an old one
    return size, model


def _is_of_main(body: dict[str, Any], session_id: str) -> bool:
    """Return whether a line is the main chain's response or boundary."""
    kind = body.get("type")
    if kind in _IGNORABLE or body.get("isSidechain") is True:
        return False
    if body.get("sessionId") != session_id or any(name in body for name in _OF_SUBAGENTS):
        raise _NotPlainError
    if kind == "user":
        if "<command-name>" in str(body.get("message"))[:200]:
            raise _NotPlainError
        return False
    is_boundary = kind == "system" and body.get("subtype") == "compact_boundary"
    if not (is_boundary or kind == "assistant"):
        raise _NotPlainError
    return True


def _time_ms(body: dict[str, Any]) -> int:
    try:
        moment = datetime.fromisoformat(body["timestamp"])
    except (KeyError, TypeError, ValueError):
        raise _NotPlainError from None
    if moment.tzinfo is None:
        raise _NotPlainError
    return int(moment.timestamp() * 1_000)


def _model(body: dict[str, Any]) -> str | None:
    return _response(body)[2]


def _response(body: dict[str, Any]) -> tuple[str | None, int, str | None]:
    """Return a response's key, its size and its model; of a boundary nothing."""
    if body["type"] == "system":
        return None, 0, None
    message = body.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(usage, dict):
        raise _NotPlainError
    key, model = message.get("id"), message.get("model")
    parts = [_counted(usage).get(name) for name in _PARTS]
    counts = [0 if part is None else part for part in parts]
    is_plain = (
        isinstance(key, str)
        and isinstance(model, str)
        and key
        and model[:1].isalnum()
        and not model.endswith("]")
        and all(type(part) is int and 0 <= part <= _MAX_COUNT for part in counts)
        and sum(counts) > 0
        and "input_tokens_details" not in usage
        and body.keys().isdisjoint(_UNUSUAL)
        and not _has_compaction(message.get("content"))
    )
    if not is_plain:
        raise _NotPlainError
    return key, sum(counts), model


def _counted(usage: dict[str, Any]) -> dict[str, Any]:
    """Return what tells a response's size, where it made one call."""
    calls = usage.get("iterations")
    if not calls:
        return usage
    if isinstance(calls, list) and len(calls) == 1 and isinstance(calls[0], dict):
        only: dict[str, Any] = calls[0]
        if only.get("type") == "message":
            return only
    raise _NotPlainError


_UNUSUAL = frozenset(
    {"isApiErrorMessage", "is_api_error_message", "context_usage", "contextUsage", "task_id"}
)
"""Fields of an assistant's line with which it may be no response."""


def _has_compaction(content: object) -> bool:
    return isinstance(content, list) and any(
        not isinstance(block, dict) or block.get("type") == "compaction" for block in content
    )


def _compactions(lines: Sequence[BodyLine], session_id: str) -> list[int | None]:
    """Return how long each compaction took, where that is told."""
    durations: list[int | None] = []
    seen: set[str] = set()
    for body, _ in lines:
        if body.get("type") != "system" or body.get("subtype") != "compact_boundary":
            continue
        metadata, uuid = body.get("compactMetadata"), body.get("uuid")
        if (
            body.get("sessionId") != session_id
            or body.get("isSidechain") is True
            or not isinstance(metadata, dict)
            or not isinstance(uuid, str)
            or not uuid
            or uuid in seen
        ):
            raise _NotPlainError
        seen.add(uuid)
        duration = metadata.get("durationMs")
        if duration is not None and (type(duration) is not int or not 0 <= duration <= _MAX_COUNT):
            raise _NotPlainError
        durations.append(duration)
    return durations
