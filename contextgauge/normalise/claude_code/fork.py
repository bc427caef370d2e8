"""How a session of Claude Code is forked: in the form that its own `/branch` writes.

Each copied line has the id of the new session, and in `forkedFrom` the session and the line that it
was; ids of lines stay, as do the links between them. What only a screen needs (`progress`) and what
is of a session's run (its queue, snapshots of files, costs) is not copied. A prompt of which only
the queue has a line gets one of its own, where the model saw it: the runtime resumes from linked
lines alone.
"""

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from contextgauge.normalise.fields import flag, name
from contextgauge.normalise.fork_form import ForkForm, NewFork, iso
from contextgauge.normalise.signals import Body
from contextgauge.records import Json

VERSION: Final = "2.1.332"
"""Whose form this is."""

_SCREEN_ONLY: Final = "progress"
_REPLACEMENTS: Final = "content-replacement"
"""A line with the texts that stand for large results."""
_OF_SESSION: Final = frozenset({"slug", "teamName", "agentName"})
"""Fields that tie a line to a plan or a team of its session."""
_OF_ANY_LINE: Final = ("cwd", "version", "gitBranch", "timestamp")
"""Fields that a line has in common with the one before it."""
_MOST: Final = 200
"""Characters of a folder's name: of a longer one the runtime shortens it."""


def _copy(
    lines: Iterable[Body], fork: NewFork, prompts: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Json]]:
    dropped: dict[str, str | None] = {}
    for line in lines:
        if line.get("type") == _REPLACEMENTS:
            yield {**line, "sessionId": fork.id}
        line_id = name(line, "uuid")
        if line_id is None or "parentUuid" not in line or flag(line, "isSidechain"):
            continue
        parent = name(line, "parentUuid")
        while parent is not None and parent in dropped:
            parent = dropped[parent]
        if line.get("type") == _SCREEN_ONLY:
            dropped[line_id] = parent
            continue
        copy = {key: value for key, value in line.items() if key not in _OF_SESSION}
        for number, prompt in enumerate(prompts.get(line_id, ())):
            own_id = _line_id(fork, f"prompt {number} before {line_id}")
            yield {
                **_line(fork, own_id, parent),
                **{key: copy[key] for key in _OF_ANY_LINE if key in copy},
                "type": "user",
                "message": {"role": "user", "content": prompt},
                "forkedFrom": {"sessionId": fork.origin, "messageUuid": own_id},
            }
            parent = own_id
        copied: dict[str, Json] = {"parentUuid": parent, "sessionId": fork.id}
        yield {**copy, **copied, "forkedFrom": {"sessionId": fork.origin, "messageUuid": line_id}}
    yield _titled(fork)


def _titled(fork: NewFork) -> dict[str, Json]:
    return {
        "type": "custom-title",
        "sessionId": fork.id,
        "customTitle": fork.title,
        "uuid": _line_id(fork, "title"),
        "timestamp": fork.time,
    }


def _line_id(fork: NewFork, name_: str) -> str:
    return str(uuid.uuid5(uuid.UUID(fork.id), name_))


def _write(messages: Sequence[tuple[str, Json]], fork: NewFork) -> Iterator[dict[str, Json]]:
    parent: str | None = None
    for number, past in enumerate(fork.past, 1):
        parent = _line_id(fork, f"boundary {number}")
        yield {
            **_line(fork, parent, None),
            "timestamp": None if past.time_ms is None else iso(past.time_ms),
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "compactMetadata": {"trigger": past.trigger, "preTokens": past.tokens_before},
            "forkedFrom": {"sessionId": fork.origin, "messageUuid": parent},
        }
    is_summary = bool(fork.past)
    for index, (message_id, item) in enumerate(messages):
        role = item.get("role") if isinstance(item, dict) else None
        if not isinstance(item, dict) or role not in ("user", "assistant"):
            continue
        line_id = _line_id(fork, str(index))
        yield {
            **_line(fork, line_id, parent),
            **({"isCompactSummary": True} if is_summary and role == "user" else {}),
            "type": role,
            "message": item if role == "user" else _answer(item, line_id, fork.model),
            "forkedFrom": {"sessionId": fork.origin, "messageUuid": message_id},
        }
        parent, is_summary = line_id, False
    yield _titled(fork)


def _line(fork: NewFork, line_id: str, parent: str | None) -> dict[str, Json]:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": fork.folder,
        "sessionId": fork.id,
        "version": VERSION,
        "gitBranch": "",
        "uuid": line_id,
        "timestamp": fork.time,
    }


def _answer(item: dict[str, Json], line_id: str, model: str | None) -> dict[str, Json]:
    """Return an answer as the API gives it, with what the item lacks of that."""
    content = item.get("content")
    whole: dict[str, Json] = {
        "id": f"msg_{line_id.replace('-', '')}",
        "type": "message",
        "model": model or "unknown",
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": dict.fromkeys(("input_tokens", "output_tokens"), 0),
    }
    blocks: Json = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**whole, **item, "content": blocks}


def _path(fork: NewFork) -> str:
    """Return where the runtime looks for it. Raises ValueError for a folder whose name is long."""
    folder = re.sub("[^a-zA-Z0-9]", "-", fork.folder)
    if len(folder) > _MOST:
        raise ValueError(f"the name of the folder {fork.folder} is too long")
    return f"{folder}/{fork.id}.jsonl"


def _is_line(line: Body) -> bool:
    return "parentUuid" in line and name(line, "uuid") is not None


FORK: Final = ForkForm(
    name="claude-code",
    command="claude --resume {}",
    format="anthropic",
    new_id=lambda _, random: random,
    is_line=_is_line,
    copy=_copy,
    write=_write,
    path=_path,
    is_with_origin=True,
    begin=lambda _, at: at,
    begins_turn=lambda _: False,
)
