"""What Claude Code's lines hold of a conversation, and of what a person typed."""

from collections.abc import Iterator
from typing import Final

from contextgauge.normalise.fields import flag, mapping
from contextgauge.normalise.signals import Body
from contextgauge.normalise.spellings import OWN_FIELD
from contextgauge.records import Json

_METADATA: Final = (
    ("preserved_segment", "preservedSegment"),
    ("pre_tokens", "preTokens"),
    (OWN_FIELD, OWN_FIELD),
)


def message(line: Body) -> dict[str, Json] | None:
    """Reduce a `user` or `assistant` line."""
    content = line.get("message")
    if isinstance(content, str) and line.get("type") == "user":
        return {"message": {"role": "user", "content": content}}
    if not isinstance(content, dict):
        return None
    own_line: dict[str, Json] = {"message": content}
    if "supersedes" in line:
        own_line["supersedes"] = line["supersedes"]
    if not _is_of_person(line):
        own_line["isMeta"] = True
    return own_line


def attachment(line: Body) -> dict[str, Json] | None:
    """Reduce a line of what was attached: a person's message that came while the agent worked."""
    attached = mapping(line, "attachment") or {}
    prompt = attached.get("prompt")
    if attached.get("type") != "queued_command" or not isinstance(prompt, str | list):
        return None
    own_line: dict[str, Json] = {"type": "user", "message": {"role": "user", "content": prompt}}
    if attached.get("commandMode", "prompt") != "prompt" or not _is_of_person(attached):
        own_line["isMeta"] = True
    return own_line


def attached(line: Body) -> str | None:
    """Return the texts of what was attached, without what names its kind."""
    content = mapping(line, "attachment")
    return None if content is None else "\n".join(_texts_in(content))


def _texts_in(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts_in(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name != "type":
                yield from _texts_in(each)


def queue(line: Body) -> dict[str, Json] | None:
    """Reduce a line of the queue of what a person writes while the agent works."""
    return {each: line[each] for each in ("operation", "content") if each in line}


def _is_of_person(fields: Body) -> bool:
    origin = mapping(fields, "origin") or {}
    return not flag(fields, "isMeta", "is_meta") and origin.get("kind", "human") == "human"


def system(line: Body) -> dict[str, Json] | None:
    """Reduce a `system` line: a model, a boundary or a reset."""
    match line.get("subtype"):
        case "init":
            return {each: line[each] for each in ("model",) if each in line}
        case "compact_boundary":
            metadata = mapping(line, "compact_metadata", "compactMetadata") or {}
            spelled = {own: metadata.get(own, metadata.get(other)) for own, other in _METADATA}
            known: Json = {each: value for each, value in spelled.items() if value is not None}
            summary = mapping(line, "message")  # of other runtimes' boundaries
            own: dict[str, Json] = {} if summary is None else {"message": summary}
            return {"compact_metadata": known, **own}
        case "conversation_reset":
            return {}
    return None


def nothing_else(_: Body) -> dict[str, Json]:
    """Reduce a line whose type says all."""
    return {}


def prompt(line: Body) -> Json:
    """Return the content of a person's message."""
    content = line.get("message")
    if line.get("isSidechain") or line.get("isCompactSummary") or not _is_of_person(line):
        return None
    if not isinstance(content, dict) or content.get("role", "user") != "user":
        return None
    return content.get("content", content.get("message"))
