"""Usage by provider: Anthropic counts cached tokens next to the input, others inside (R7, R8)."""

from typing import Final

from contextgauge.normalise.fields import count, items, mapping
from contextgauge.normalise.signals import Body, Usage

_RESPONSE_ITERATIONS: Final = ("message", "fallback_message")
"""Iterations that are a call of the conversation; others are a tool's or a compaction's own."""


def find_usage(message: Body) -> Body | None:
    """Return the usage object of a response, under any provider's name."""
    return mapping(message, "usage") or mapping(message, "usageMetadata", "usage_metadata")


def read_usage(usage: Body) -> Usage | None:
    """Return the input-side counts, or None where the object has none."""
    details = mapping(usage, "input_tokens_details")
    if details is not None:
        return _inside(count(usage, "input_tokens"), count(details, "cached_tokens"))
    anthropic = _beside(usage)
    if anthropic is not None:
        return anthropic
    details = mapping(usage, "prompt_tokens_details") or {}
    cached = count(usage, "cachedContentTokenCount", "cached_content_token_count")
    if cached is None:
        cached = count(details, "cached_tokens")
    return _inside(count(usage, "prompt_tokens", "promptTokenCount", "prompt_token_count"), cached)


def read_codex_usage(usage: Body) -> Usage | None:
    """Return the counts of a Codex rollout's `last_token_usage`."""
    return _inside(count(usage, "input_tokens"), count(usage, "cached_input_tokens"))


def read_output(usage: Body) -> int | None:
    """Return the output tokens of a usage object."""
    return count(
        usage,
        "output_tokens",
        "completion_tokens",
        "candidatesTokenCount",
        "candidates_token_count",
    )


def _inside(prompt: int | None, cached: int | None) -> Usage | None:
    if prompt is None:
        return None if cached is None else Usage(None, None, cached)
    if cached is not None and cached > prompt:
        cached = None  # more cached than there was: the part is wrong, the whole stands
    return Usage(prompt - (cached or 0), None, cached)


def _beside(usage: Body) -> Usage | None:
    counted = usage
    for entry in reversed(items(usage, "iterations")):
        if entry.get("type") in _RESPONSE_ITERATIONS:
            counted = entry
            break
    fresh = count(counted, "input_tokens")
    creation = count(counted, "cache_creation_input_tokens")
    read = count(counted, "cache_read_input_tokens")
    if fresh is None and creation is None and read is None:
        return None
    return Usage(fresh, creation, read)
