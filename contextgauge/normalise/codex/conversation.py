"""What a rollout's lines hold of a conversation, and of what a person typed."""

from typing import Final

from contextgauge.normalise.fields import mapping, text
from contextgauge.normalise.signals import Body
from contextgauge.records import Json

_EVENTS: Final = ("thread_rolled_back", "token_count")
_PROMPTS: Final = ("message", "user_message")


def item(line: Body) -> dict[str, Json] | None:
    """Reduce a line that holds an item, or all that a compaction left."""
    payload = mapping(line, "payload")
    return None if payload is None else {"payload": payload}


def facts(line: Body) -> dict[str, Json] | None:
    """Reduce a head or a turn's beginning: folder and model."""
    return _picked(line, "cwd", "model")


def instructions(line: Body) -> str | None:
    """Return the system prompt that a head has."""
    payload = mapping(line, "payload") or {}
    base = mapping(payload, "base_instructions") or {}
    return text(base, "text") or text(payload, "base_instructions", "instructions")


def event(line: Body) -> dict[str, Json] | None:
    """Reduce an event: sizes, or that turns were taken back."""
    payload = mapping(line, "payload") or {}
    return _picked(line, "type", "info") if payload.get("type") in _EVENTS else None


def prompt(line: Body) -> Json:
    """Return the content of a person's message."""
    payload = mapping(line, "payload") or {}
    if payload.get("type") not in _PROMPTS or payload.get("role", "user") != "user":
        return None
    return payload.get("content", payload.get("message"))


def _picked(line: Body, *names: str) -> dict[str, Json] | None:
    payload = mapping(line, "payload")
    if payload is None:
        return None
    return {"payload": {each: payload[each] for each in names if each in payload}}
