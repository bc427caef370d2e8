"""Usage by provider: Anthropic counts cached tokens next to the input, others inside (R7, R8)."""

from collections.abc import Iterable
from typing import Final

from contextgauge.frozen import copied
from contextgauge.normalise.fields import count, items, mapping, name
from contextgauge.normalise.signals import Body, Usage
from contextgauge.records import Json
from contextgauge.reported_receipt import ReportedReceipt, WrittenReceipt

_STANDARD_TIERS: Final = frozenset({"standard", "default", "auto", "on_demand"})
"""Words of providers for the tier that has the list price, in lower case."""

_RESPONSE_ITERATIONS: Final = ("message", "fallback_message")
"""Iterations that are a call of the conversation; others are a tool's or a compaction's own."""


def find_usage(message: Body) -> Body | None:
    """Return the usage object of a response, under any provider's name."""
    return mapping(message, "usage") or mapping(message, "usageMetadata", "usage_metadata")


def tier_of(tier: str | None, speed: str | None = None) -> str | None:
    """Return a service tier that may have a price of its own, in lower case: `priority`, `fast`.

    None is the standard one, or that it is not reported. Claude's `speed` counts as a tier.
    """
    for word in (speed, tier):
        if word is not None and (lower := word.lower()) not in _STANDARD_TIERS:
            return lower
    return None


def read_usage(usage: Body) -> Usage | None:
    """Return the input-side counts, or None where the object has none."""
    counts = _read_counts(usage)
    if counts is not None:
        tier = name(usage, "service_tier", "serviceTier", "trafficType", "traffic_type")
        counts.tier = tier_of(tier, name(usage, "speed"))
    return counts


def _read_counts(usage: Body) -> Usage | None:
    prompt = count(usage, "prompt_tokens")
    if prompt is not None:
        return read_inside(
            prompt,
            _cached(usage, "prompt_tokens_details", "cache_read_input_tokens"),
            count(usage, "cache_creation_input_tokens"),
        )
    if mapping(usage, "input_tokens_details") is not None:
        return read_inside(count(usage, "input_tokens"), _cached(usage, "input_tokens_details"))
    anthropic = _next_to_input(usage)
    if anthropic is not None:
        return anthropic
    cached = count(usage, "cachedContentTokenCount", "cached_content_token_count")
    if cached is None:
        cached = _cached(usage, "prompt_tokens_details")
    return read_inside(count(usage, "promptTokenCount", "prompt_token_count"), cached)


def read_codex_usage(usage: Body) -> Usage | None:
    """Return the counts of a Codex `last_token_usage`, in the rollout's or the server's names."""
    return read_inside(
        count(usage, "input_tokens", "inputTokens"),
        count(usage, "cached_input_tokens", "cachedInputTokens"),
        count(usage, "cache_write_input_tokens", "cacheWriteInputTokens"),
    )


def read_gemini_tokens(tokens: Body) -> tuple[Usage | None, int | None]:
    """Return the counts of a message that Gemini CLI stored, and its output."""
    prompt = count(tokens, "input")
    output = gemini_output(
        count(tokens, "output"),
        count(tokens, "thoughts"),
        prompt=prompt,
        tool=count(tokens, "tool"),
        total=count(tokens, "total"),
    )
    return read_inside(prompt, count(tokens, "cached")), output


def read_output(usage: Body) -> int | None:
    """Return the output tokens of a usage object, those that a model thinks among them."""
    output = count(usage, "output_tokens", "outputTokens", "completion_tokens")
    if output is not None:
        return output
    return gemini_output(
        count(usage, "candidatesTokenCount", "candidates_token_count"),
        count(usage, "thoughtsTokenCount", "thoughts_token_count"),
        prompt=count(usage, "promptTokenCount", "prompt_token_count"),
        tool=count(usage, "toolUsePromptTokenCount", "tool_use_prompt_token_count"),
        total=count(usage, "totalTokenCount", "total_token_count"),
    )


def gemini_output(
    shown: int | None,
    thoughts: int | None,
    *,
    prompt: int | None,
    tool: int | None,
    total: int | None,
) -> int | None:
    """Return the output tokens of counts in Gemini's form; None where it has none.

    Its API counts thoughts next to the candidates, and both in the total. Where the total leaves no
    room for them they are among the candidates, as runtimes that call other APIs write it.
    """
    if shown is None or thoughts is None:
        return shown if thoughts is None else thoughts
    without = (prompt or 0) + shown
    is_inside = prompt is not None and total in {without, without + (tool or 0)}
    return shown if is_inside else shown + thoughts


def anthropic_usage(usage: Usage | None, output: int | None) -> dict[str, Json]:
    """Return the `usage` of a message in Anthropic's form; nothing where it is unknown."""
    if usage is None:
        return {}
    counts: dict[str, Json] = {
        "input_tokens": usage.input,
        "output_tokens": output,
        "cache_creation_input_tokens": usage.creation,
        "cache_read_input_tokens": usage.read,
    }
    return {"usage": counts}


def summary_cost(usage: Usage | None, output: int | None) -> ReportedReceipt | None:
    """Return a receipt with the cost of the call that wrote a summary; None where it is unknown."""
    if usage is None and output is None:
        return None
    receipt = ReportedReceipt(
        summary_input_tokens=None if usage is None else usage.used,
        summary_cache_read_tokens=None if usage is None else usage.read,
        summary_output_tokens=output,
    )
    if usage is None or usage.creation is None:
        return receipt
    return copied(
        WrittenReceipt,
        receipt,
        summary_cache_creation_tokens=usage.creation,
        summary_cache_creation_1h_tokens=usage.creation_1h,
    )


def server_compaction_cost(usage: Body) -> ReportedReceipt | None:
    """Return the cost of a compaction inside a response: that of its iterations of this type."""
    calls = [each for each in items(usage, "iterations") if each.get("type") == "compaction"]
    inputs = [counts for each in calls if (counts := _of_anthropic(each)) is not None]
    total = Usage(
        _sum(each.input for each in inputs),
        _sum(each.creation for each in inputs),
        _sum(each.read for each in inputs),
        _sum(each.creation_1h for each in inputs),
    )
    return summary_cost(total if inputs else None, _sum(map(read_output, calls)))


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _cached(usage: Body, details: str, *others: str) -> int | None:
    """Return the cached tokens of a usage's details, else those under another name."""
    cached = count(mapping(usage, details) or {}, "cached_tokens")
    return count(usage, *others) if cached is None else cached


def read_inside(prompt: int | None, read: int | None, creation: int | None = None) -> Usage | None:
    """Return the counts of a prompt that includes its cached parts, which are cut to fit it.

    None where none is known.
    """
    if prompt is None:
        if read is None and creation is None:
            return None
        return Usage(None, creation, read)
    read = None if read is None else min(read, prompt)
    rest = prompt - (read or 0)
    creation = None if creation is None else min(creation, rest)
    return Usage(rest - (creation or 0), creation, read)


def without_cached(sent: Json, read: int | None, creation: int | None) -> Usage | None:
    """Return the counts of an input that was reckoned as the prompt less its cached part.

    A provider that rounds the cached part up makes it negative: only both together are right.
    """
    if isinstance(sent, int) and sent < 0 and read is not None:
        return Usage(0, creation, max(read + sent, 0))
    fresh = count({"sent": sent}, "sent")
    if fresh is None and read is None and creation is None:
        return None
    return Usage(fresh, creation, read)


def _next_to_input(usage: Body) -> Usage | None:
    counted = usage
    for entry in reversed(items(usage, "iterations")):
        if entry.get("type") in _RESPONSE_ITERATIONS:
            counted = entry
            break
    return _of_anthropic(counted)


def _of_anthropic(counted: Body) -> Usage | None:
    fresh = count(counted, "input_tokens")
    creation = count(counted, "cache_creation_input_tokens")
    read = count(counted, "cache_read_input_tokens")
    if fresh is None and creation is None and read is None:
        return None
    by_age = mapping(counted, "cache_creation")
    creation_1h = None if by_age is None else count(by_age, "ephemeral_1h_input_tokens")
    return Usage(fresh, creation, read, creation_1h)
