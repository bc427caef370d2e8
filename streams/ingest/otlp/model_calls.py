"""Spans of calls of a model, by OpenTelemetry's conventions for generative AI.

Source: the page on client inference of open-telemetry/semantic-conventions-genai.
"""

from typing import Any, Final

from streams.ingest.otlp.runtime_events import (
    Attributes,
    Body,
    ExportingRuntime,
    assistant,
    prompt_usage,
)
from streams.ingest.otlp.telemetry_item import number, word

AGENT: Final = ExportingRuntime("other", ("gen_ai.conversation.id",))
"""Of no runtime that is known, so that no window is assumed for its models."""

_OPERATIONS: Final = frozenset({"chat", "generate_content", "text_completion"})
"""Calls of a model. The usage of others, as of `invoke_agent`, is a sum of several."""

_READ_FROM_LOGS: Final = frozenset({"claude-code", "gemini-cli", "qwen-code"})
"""Services whose log records report the same calls, and whether they are the main conversation's;
Codex' spans are of no operation."""

_WRITTEN: Final = ("gen_ai.usage.cache_write.input_tokens",)
_WRITTEN_BEFORE: Final = ("gen_ai.usage.cache_creation.input_tokens",)
"""The newest name, and that of the releases before."""


def model_call(attributes: Attributes) -> Body | None:
    """Return the message of a span; None where it is no call with a size."""
    if word(attributes, "gen_ai.operation.name") not in _OPERATIONS:
        return None
    if word(attributes, "service.name") in _READ_FROM_LOGS:
        return None
    prompt = number(attributes, "gen_ai.usage.input_tokens")
    if prompt is None:
        return None
    model = word(attributes, "gen_ai.response.model", "gen_ai.request.model")
    message = assistant(model, _usage(attributes, prompt), word(attributes, "gen_ai.response.id"))
    return {**message, **_chain(attributes)}


def _usage(attributes: Attributes, prompt: int) -> dict[str, Any]:
    read = number(attributes, "gen_ai.usage.cache_read.input_tokens")
    written = number(attributes, *_WRITTEN, *_WRITTEN_BEFORE)
    output = number(attributes, "gen_ai.usage.output_tokens")
    if (read or 0) + (written or 0) <= prompt:
        return prompt_usage(prompt, read, output, written)
    # By the conventions the input includes the cached parts, which it cannot here: instrumentations
    # of before report it as Anthropic does, next to them.
    return {
        "input_tokens": prompt,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": output,
    }


def _chain(attributes: Attributes) -> dict[str, str]:
    """Return a subagent's chain: of an agent that is not the main one, where that is named."""
    agent = word(attributes, "gen_ai.agent.id")
    main = word(attributes, "gen_ai.main_agent.id", "microsoft.gen_ai.main_agent.id")
    if agent is None or main is None or agent == main:
        return {}
    return {"agent_id": agent, "parent_tool_use_id": agent}
