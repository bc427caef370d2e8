"""Which lines of a transcript of Claude Code a user rewound: they are no part of its conversation.

Each line names the one before it, its `parentUuid`; a compaction's boundary names it in
`logicalParentUuid`. From the last message back they make a chain. Off it stand results of parallel
calls, which belong to the conversation, and turns that a user took back.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from contextgauge.records import Json

Line: TypeAlias = Mapping[str, Json]

_Place: TypeAlias = Literal["in", "out", "unknown"]


def without_rewound(lines: Sequence[Line]) -> list[Line]:
    """Return the lines without those of turns that were taken back.

    Lines that have no links, or whose links lead out of the file, stay.
    """
    by_uuid = {uuid: line for line in lines if isinstance(uuid := line.get("uuid"), str)}
    chain, complete = _chain(lines, by_uuid)
    places: dict[str, _Place] = {}
    kept: list[Line] = []
    for line in lines:
        uuid = line.get("uuid")
        if not isinstance(uuid, str):
            kept.append(line)
            continue
        parent = _parent(line)
        place: _Place = "in"
        if uuid not in chain:
            if isinstance(parent, str):
                place = places.get(parent, "unknown")
            elif not complete:
                place = "unknown"
            if place == "in" and (_is_turn(line) or is_boundary(line)):
                place = "out"
        places[uuid] = place
        if place != "out":
            kept.append(line)
    return kept


def is_boundary(line: Line) -> bool:
    """Whether a line says that everything before it was compacted."""
    return line.get("type") == "system" and line.get("subtype") == "compact_boundary"


def _chain(lines: Sequence[Line], by_uuid: Mapping[str, Line]) -> tuple[set[str], bool]:
    """Return the ids from the last message back, and whether they reach its start."""
    line = next((each for each in reversed(lines) if each.get("type") in ("user", "assistant")), {})
    chain: set[str] = set()
    while isinstance(uuid := line.get("uuid"), str) and uuid not in chain and "parentUuid" in line:
        chain.add(uuid)
        parent = _parent(line)
        if not isinstance(parent, str):
            return chain, True
        line = by_uuid.get(parent, {})
    return chain, False


def _parent(line: Line) -> Json:
    parent = line.get("parentUuid")
    return line.get("logicalParentUuid") if parent is None else parent


def _is_turn(line: Line) -> bool:
    """Whether a person says something in a line: no result of a tool, nothing of the runtime's."""
    message = line.get("message")
    if line.get("type") != "user" or line.get("isMeta") is True or not isinstance(message, dict):
        return False
    content = message.get("content")
    return isinstance(content, str) or (
        isinstance(content, list)
        and any(isinstance(each, dict) and each.get("type") != "tool_result" for each in content)
    )
