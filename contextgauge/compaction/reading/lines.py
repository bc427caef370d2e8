"""What a line of a runtime says of a conversation: all that reading it needs, and no more.

A runtime's adapter reduces its lines to one of these forms: a `user` or `assistant` line with an
Anthropic `message` and a `compact_boundary` as Claude Code writes them (the summary may come along
as its `message`), an item and a `compacted` as Codex does, or an API's answer. They are stored so,
and read by `conversation.py`.
"""

import hashlib
from typing import Final, TypeAlias

from contextgauge.json_codec import dumps
from contextgauge.normalise.adapter import NO_TEXT, SHORTENED
from contextgauge.normalise.fields import flag, long_name, mapping, name
from contextgauge.normalise.responses import SYNTHETIC_MODEL, answer_of, inner_boundary
from contextgauge.normalise.runtimes import HEADS, line_of
from contextgauge.normalise.signals import Reset, Response
from contextgauge.normalise.spellings import OWN_FIELD
from contextgauge.records import Json

Line: TypeAlias = dict[str, Json]

LEFT_OUT: Final = b"[contextgauge: "
"""Stands where the publisher left something out."""

DIGEST_BYTES: Final = 8

_NAMES: Final = ("type", "subtype", "uuid", "parentUuid", "logicalParentUuid")
_FLAGS: Final = ("isCompactSummary", "isSynthetic", "isReplay", "isMeta")


def reduced(line: Line) -> dict[str, Json] | None:
    """Return what matters of a line; None where nothing does, as of a subagent's lines.

    Reducing what was reduced changes nothing.
    """
    return None if _is_of_side(line) else reduced_of_any(line)


def reduced_of_any(line: Line) -> dict[str, Json] | None:
    """Return what matters of a line of the main conversation, or of a subagent's own."""
    conversation = line_of(line).conversation
    own_line = None if conversation is None else conversation(line)
    if is_linked(line):
        own_line = {} if own_line is None else own_line  # others name it as the one before them
    if own_line is None:
        return None
    own_line |= {each: line[each] for each in _NAMES if each in line and each not in own_line}
    own_line |= {each: True for each in _FLAGS if line.get(each) is True}
    if (folder := long_name(line, "cwd")) is not None:
        own_line["cwd"] = folder
    if "uuid" not in own_line and "timestamp" in line:
        own_line["timestamp"] = line["timestamp"]  # two that say the same are not the same
    if NO_TEXT in line or (SHORTENED in line and LEFT_OUT in dumps(own_line)):
        own_line[NO_TEXT] = True
    return own_line


def _is_of_side(line: Line) -> bool:
    spelling = line_of(line).spelling
    return flag(line, *spelling.sidechain) or name(line, *spelling.parent) is not None


def digest_of(line: Line) -> bytes:
    """Return what makes two reduced lines the same: their id, else all that they say."""
    uuid = name(line, "uuid")
    value = dumps(line) if uuid is None else uuid.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(value, digest_size=DIGEST_BYTES).digest()


def report_of(line: Line) -> Response | None:
    """Return what Codex reports of an answer in a line of its own."""
    return next((each for each in line_of(line).read(line) if isinstance(each, Response)), None)


def model_of(line: Line) -> str | None:
    """Return the model that a line names for the main conversation."""
    holders = (line.get("message"), line.get("payload"), line.get("response"), line)
    for each in holders:
        if isinstance(each, dict) and (model := name(each, "model")) is not None:
            return None if model == SYNTHETIC_MODEL else model
    return None


def folder_of(line: Line) -> str | None:
    """Return the folder in which a line says that its agent works."""
    return long_name(line, "cwd") or long_name(mapping(line, "payload") or {}, "cwd")


def is_reset(line: Line) -> bool:
    """Whether a line begins the conversation again: by itself, or as the user's command."""
    return any(
        isinstance(each, Reset) and not each.keeps_messages for each in line_of(line).read(line)
    )


def text_of(item: Json) -> str:
    """Return the texts of an item of any format, a line each."""
    content = item.get("content") if isinstance(item, dict) else None
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts = (each.get("text") for each in content if isinstance(each, dict))
    return "\n".join(each for each in texts if isinstance(each, str))


def is_boundary(line: Line) -> bool:
    """Whether a line says that everything before it was compacted."""
    return line.get("type") == "system" and line.get("subtype") == "compact_boundary"


def is_linked(line: Line) -> bool:
    """Whether a line says which one is before it, as lines of a transcript do."""
    return name(line, "uuid") is not None and (
        "parentUuid" in line or name(line, "logicalParentUuid") is not None
    )


def parent_of(line: Line) -> str | None:
    """Return the id of the line before a line."""
    return name(line, "parentUuid") or name(line, "logicalParentUuid")


def own_edit(line: Line) -> dict[str, Json] | None:
    """Return what a boundary says of the service's compaction that it is."""
    if not is_boundary(line):
        return None
    metadata = mapping(line, "compact_metadata", "compactMetadata") or {}
    return mapping(metadata, OWN_FIELD)


def compacts_inside(line: Line) -> bool:
    """Whether a line is of an answer in which the API compacted what came before it (R29)."""
    if line.get("type") == "assistant":
        return inner_boundary(mapping(line, "message") or {}) is not None
    answer = answer_of(line)
    return answer is not None and inner_boundary(answer.body) is not None


def begins_anew(line: Line) -> bool:
    """Whether nothing before a line is needed to know what the model sees after it."""
    if is_boundary(line):
        return own_edit(line) is None
    return (
        line.get("type") == "compacted"
        or line.get("isCompactSummary") is True
        or is_reset(line)
        or compacts_inside(line)
    )


def names_beginning(line: Line) -> bool:
    """Whether a line can only be the first of its conversation."""
    if line.get("type") in HEADS:
        return True
    return is_linked(line) and parent_of(line) is None and not is_boundary(line)
