"""Anthropic's Messages API, through its official SDK: the extra `anthropic`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from contextgauge.compaction.formats import write_messages
from contextgauge.compaction.prompts import Prompt
from contextgauge.compaction.summarisers.model import Answer, Stop, body_fields, need
from contextgauge.records import Json

if TYPE_CHECKING:
    from anthropic.types import Message as Reply
    from anthropic.types import MessageParam

_STOPS: Final[Mapping[str | None, Stop]] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class AnthropicModel:
    """A Claude model. Without `api_key`, the SDK takes its environment variables.

    `extra` are further fields of the body. For `cache-aligned`, those of the conversation's own
    requests belong there, such as `cache_control`, `thinking` and `tool_choice`: a request that
    differs in them does not read the cache. With `stream` the answer comes in pieces, which some
    gateways need to keep a connection open.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        stream: bool = False,
        extra: Mapping[str, Json] | None = None,
    ) -> None:
        """Raises ConfigError where the SDK is not installed."""
        need("anthropic", "anthropic")
        self.name = f"anthropic/{model}"
        self._model, self._api_key, self._base_url = model, api_key, base_url
        self._stream, self._extra = stream, extra or {}

    async def answer(self, prompt: Prompt) -> Answer:
        """Call the model once. Raises what the SDK raises."""
        from anthropic import AsyncAnthropic  # noqa: PLC0415 -- an extra, slow to import

        messages = cast("list[MessageParam]", write_messages(prompt.messages, "anthropic"))
        fields = body_fields(prompt, self._extra, system=prompt.system)
        async with AsyncAnthropic(
            api_key=self._api_key, base_url=self._base_url, max_retries=0, timeout=None
        ) as client:
            if not self._stream:
                return _read(
                    await client.messages.create(
                        model=self._model,
                        max_tokens=prompt.max_tokens,
                        messages=messages,
                        extra_body=fields,
                    )
                )
            async with client.messages.stream(
                model=self._model,
                max_tokens=prompt.max_tokens,
                messages=messages,
                extra_body=fields,
            ) as stream:
                return _read(await stream.get_final_message())


def _read(reply: "Reply") -> Answer:
    usage = reply.usage
    read = usage.cache_read_input_tokens or 0
    return Answer(
        tuple(block.text for block in reply.content if block.type == "text"),
        _STOPS.get(reply.stop_reason, "cut"),
        sum(block.type == "tool_use" for block in reply.content),
        any(block.type in {"thinking", "redacted_thinking"} for block in reply.content),
        reply.model,
        usage.input_tokens + (usage.cache_creation_input_tokens or 0) + read,
        read,
        usage.output_tokens,
    )
