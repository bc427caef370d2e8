"""Events that agent runtimes export as log records, and what is in them.

Read are responses of the main conversation, compactions, and limits; what an event does not report
stays unknown. A response counts only where its event says that it is the main conversation's:
runtimes also report the calls of subagents, and those that they make on the side, and the size of
these is another context's.

Sources: Claude Code's documentation of monitoring; google-gemini/gemini-cli and QwenLM/qwen-code,
packages/core/src/telemetry; openai/codex, codex-rs/otel.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from contextgauge.normalise.usage import gemini_output
from schemas.records import Runtime
from streams.ingest.otlp.telemetry_item import number, word

Attributes: TypeAlias = Mapping[str, Any]
Body: TypeAlias = dict[str, Any]
"""A message of our topic, without its session, id and time."""

_MAIN_SOURCES: Final = ("repl_main_thread", "sdk")
"""What Claude Code calls the main conversation, in a terminal and by its SDK; the first may go
on, as in `repl_main_thread:outputStyle:custom`."""

_SUMMARISING: Final = "compact"
_OWN_CALL: Final = {"isSidechain": True, "agentId": "acompact"}
"""A call that writes a summary: its cost is the compaction's (R11)."""

_MAIN_PROMPT: Final = "########"
"""Between the session and the number of a prompt of Qwen Code's main conversation; its others have
names of their own, or a subagent's."""


def assistant(model: str | None, usage: Mapping[str, int | None], key: str | None = None) -> Body:
    """Return the message of a response; a count that is unknown is left out."""
    known = {name: value for name, value in usage.items() if value is not None}
    message = {"id": key, "model": model, "usage": known}
    return {
        "type": "assistant",
        "message": {name: value for name, value in message.items() if value is not None},
    }


def prompt_usage(
    prompt: int | None, cached: int | None, output: int | None, written: int | None = None
) -> Body:
    """Return a usage whose prompt includes what was read from the cache and written to it."""
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "cache_creation_input_tokens": written,
        **details,
    }


def _boundary(**metadata: object) -> Body:
    known = {name: value for name, value in metadata.items() if value is not None}
    return {"type": "system", "subtype": "compact_boundary", "compact_metadata": known}


def _claude_request(attributes: Attributes) -> Body | None:
    source = (word(attributes, "query_source") or "").partition(":")[0]
    if source not in (*_MAIN_SOURCES, _SUMMARISING):
        return None
    usage = {
        "input_tokens": number(attributes, "input_tokens"),
        "cache_creation_input_tokens": number(attributes, "cache_creation_tokens"),
        "cache_read_input_tokens": number(attributes, "cache_read_tokens"),
        "output_tokens": number(attributes, "output_tokens"),
    }
    request = word(attributes, "request_id")
    response = assistant(word(attributes, "model"), usage, request)
    if request is not None:
        response["requestId"] = request
    if source == _SUMMARISING:
        response |= _OWN_CALL
        response["message"]["stop_reason"] = "end_turn"  # its counts are final
    return response


def _claude_compaction(attributes: Attributes) -> Body:
    if attributes.get("success") in {False, "false"}:
        return {
            "type": "system",
            "subtype": "status",
            "status": None,
            "compact_result": "failed",
            "compact_error": word(attributes, "error"),
        }
    return _boundary(
        trigger=word(attributes, "trigger"),
        pre_tokens=number(attributes, "pre_tokens"),
        post_tokens=number(attributes, "post_tokens"),
        duration_ms=number(attributes, "duration_ms"),
    )


def _gemini_response(attributes: Attributes) -> Body | None:
    if word(attributes, "role") != "main":
        return None
    return _response_of_gemini(attributes)


def _qwen_response(attributes: Attributes) -> Body | None:
    prompt, session = word(attributes, "prompt_id"), word(attributes, *QWEN_CODE.session)
    is_main = prompt is not None and prompt.startswith(f"{session}{_MAIN_PROMPT}")
    if not is_main or word(attributes, "subagent_name") is not None:
        return None
    return _response_of_gemini(attributes)


def _response_of_gemini(attributes: Attributes) -> Body:
    prompt = number(attributes, "input_token_count")
    output = gemini_output(
        number(attributes, "output_token_count"),
        number(attributes, "thoughts_token_count"),
        prompt=prompt,
        tool=number(attributes, "tool_token_count"),
        total=number(attributes, "total_token_count"),
    )
    usage = prompt_usage(prompt, number(attributes, "cached_content_token_count"), output)
    return assistant(word(attributes, "model"), usage, word(attributes, "response_id"))


def _chat_compression(attributes: Attributes) -> Body | None:
    before, after = number(attributes, "tokens_before"), number(attributes, "tokens_after")
    if before is not None and after is not None and after > before:
        return None  # the runtime rejects a summary that is larger, and reports the attempt
    return _boundary(pre_tokens=before, post_tokens=after)


def _codex_start(attributes: Attributes) -> Body | None:
    model, window = word(attributes, "model", "slug"), number(attributes, "context_window")
    threshold = number(attributes, "auto_compact_token_limit")
    if (model is None or window is None) and threshold is None:
        return None
    reported: Body = {"type": "result"}
    if model is not None and window is not None:
        reported["modelUsage"] = {model: {"contextWindow": window}}
    if threshold is not None:
        reported["autocompact_state"] = {"threshold": threshold}
    return reported


def _codex_response(attributes: Attributes) -> Body | None:
    if word(attributes, "event.kind") != "response.completed":
        return None
    usage = prompt_usage(
        number(attributes, "input_token_count"),
        number(attributes, "cached_token_count"),
        number(attributes, "output_token_count"),
        number(attributes, "cache_write_token_count"),
    )
    if usage["prompt_tokens"] is None:
        return None  # one that failed to be read
    return assistant(word(attributes, "model", "slug"), usage)


class ExportingRuntime(NamedTuple):
    """A runtime, and the attributes that name a session of it, and its version."""

    runtime: Runtime
    session: tuple[str, ...]
    version: tuple[str, ...] = ()


CLAUDE_CODE: Final = ExportingRuntime(
    "claude-code", ("session.id",), ("app.version", "service.version")
)
# What these two export as the version of their service is that of Node.
GEMINI_CLI: Final = ExportingRuntime("gemini", ("session.id",))
QWEN_CODE: Final = ExportingRuntime("qwen-code", ("session.id", "sessionId"))
CODEX: Final = ExportingRuntime("codex", ("conversation.id",), ("app.version",))

EVENTS: Final[Mapping[str, tuple[ExportingRuntime, Callable[[Attributes], Body | None]]]] = {
    "claude_code.api_request": (CLAUDE_CODE, _claude_request),
    "claude_code.compaction": (CLAUDE_CODE, _claude_compaction),
    "gemini_cli.api_response": (GEMINI_CLI, _gemini_response),
    "gemini_cli.chat_compression": (GEMINI_CLI, _chat_compression),
    "qwen-code.api_response": (QWEN_CODE, _qwen_response),
    "qwen-code.chat_compression": (QWEN_CODE, _chat_compression),
    "codex.conversation_starts": (CODEX, _codex_start),
    "codex.sse_event": (CODEX, _codex_response),
}
"""Other events report nothing of the context."""
