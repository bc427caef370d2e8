"""How a thread of Codex is forked: a rollout with a head of its own, and its origin's lines.

They are whole and keep their times, so that nothing but the file is needed, and a reader sees that
they are older than the thread (R30). Codex itself refers to its origin's file in newer versions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from contextgauge.normalise.fields import mapping, text
from contextgauge.normalise.fork_form import ORIGINATOR, ForkForm, NewFork, iso
from contextgauge.normalise.signals import Body
from contextgauge.records import Json

VERSION: Final = "0.171.0"
"""Whose form this is."""

_HEAD: Final = "session_meta"
_OF_ORIGIN: Final = frozenset({"parent_thread_id", "forked_from_ordinal_exclusive"})


def _copy(
    lines: Iterable[Body], fork: NewFork, _: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Json]]:
    is_begun = False
    for line in lines:
        if is_begun:
            yield dict(line)
        elif line.get("type") == _HEAD:
            is_begun = True
            own = {
                key: value
                for key, value in (mapping(line, "payload") or {}).items()
                if key not in _OF_ORIGIN
            }
            yield {**line, "timestamp": fork.time, "payload": {**own, **_identity(fork)}}


def _identity(fork: NewFork) -> dict[str, Json]:
    return {
        "id": fork.id,
        "session_id": fork.id,
        "forked_from_id": fork.origin,
        "timestamp": fork.time,
    }


def _write(messages: Sequence[tuple[str, Json]], fork: NewFork) -> Iterator[dict[str, Json]]:
    yield {
        "timestamp": fork.time,
        "type": _HEAD,
        "payload": {
            **_identity(fork),
            "cwd": fork.folder,
            "originator": ORIGINATOR,
            "cli_version": VERSION,
            "source": "cli",
        },
    }
    before = iso(fork.made_ms - 1)  # copies are older than their thread
    for past in fork.past:
        time = before if past.time_ms is None else iso(past.time_ms)
        whole: dict[str, Json] = {"message": "", "replacement_history": []}
        yield {"timestamp": time, "type": "compacted", "payload": whole}
    for _, item in messages:
        is_message = isinstance(item, dict) and item.get("type", "message") == "message"
        payload = _whole(item) if is_message and isinstance(item, dict) else item
        yield {"timestamp": before, "type": "response_item", "payload": payload}


def _whole(message: dict[str, Json]) -> dict[str, Json]:
    """Return a message as rollouts have it: with its type, and its text in a part."""
    content = message.get("content")
    if isinstance(content, str):
        kind = "output_text" if message.get("role") == "assistant" else "input_text"
        content = [{"type": kind, "text": content}]
    return {**message, "type": "message", "content": content}


def _begin(lines: Sequence[Body], at: int) -> int:
    """Return where the compaction's own lines begin: its answer, and its turn if it has one."""
    summary = text(mapping(lines[at], "payload") or {}, "message") or ""
    begin = at
    for place in range(at - 1, -1, -1):
        payload = mapping(lines[place], "payload") or {}
        if lines[place].get("type") == "response_item":
            answer = _answer_in(payload)
            is_own = payload.get("role") == "assistant" and answer and summary.endswith(answer)
            if begin < at or not is_own:
                break
            begin = place
        elif _begins_turn(lines[place]):
            return place
    return begin


def _answer_in(item: Body) -> str:
    parts = item.get("content")
    texts = (
        [text(each, "text") for each in parts if isinstance(each, dict)]
        if isinstance(parts, list)
        else []
    )
    return "\n".join(each for each in texts if each)


def _begins_turn(line: Body) -> bool:
    payload = mapping(line, "payload") or {}
    return line.get("type") == "event_msg" and payload.get("type") == "task_started"


def _new_id(made_ms: int, random: str) -> str:
    """Return a version 7 UUID, whose beginning is the time."""
    digits = f"{made_ms:012x}"
    return f"{digits[:8]}-{digits[8:]}-7{random[15:]}"


def _path(fork: NewFork) -> str:
    moment = datetime.fromtimestamp(fork.made_ms / 1_000, UTC)
    return f"{moment:%Y/%m/%d}/rollout-{moment:%Y-%m-%dT%H-%M-%S}-{fork.id}.jsonl"


FORK: Final = ForkForm(
    name="codex",
    command="codex resume {}",
    format="openai-responses",
    new_id=_new_id,
    is_line=lambda line: line.get("type") == _HEAD,
    copy=_copy,
    write=_write,
    path=_path,
    is_with_origin=False,
    begin=_begin,
    begins_turn=_begins_turn,
)
