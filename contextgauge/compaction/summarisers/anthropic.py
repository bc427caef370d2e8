"""Anthropic's Messages API, through its official SDK: the extra `anthropic`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from contextgauge.compaction.formats import write_sendable
from contextgauge.compaction.summarisers.model import (
    UNCOMPRESSED,
    Answer,
    Fields,
    SdkModel,
    Stop,
    refuse_compressed,
)
from contextgauge.compaction.summarisers.prompts import Prompt

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


class AnthropicModel(SdkModel):
    """A Claude model."""

    provider = package = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"

    async def answer(self, prompt: Prompt) -> Answer:
        """Call the model once. Raises what the SDK raises."""
        from anthropic import (  # noqa: PLC0415 -- an extra
            AsyncAnthropic,
            DefaultAsyncHttpxClient,
        )

        messages = cast("list[MessageParam]", write_sendable(prompt.messages, "anthropic"))
        fields = self._fields(prompt, system=prompt.system)
        max_tokens = prompt.max_tokens + _thinking_tokens(fields)
        async with AsyncAnthropic(
            api_key=self._api_key,
            base_url=self._base_url,
            max_retries=0,
            timeout=None,
            default_headers=UNCOMPRESSED,
            http_client=DefaultAsyncHttpxClient(event_hooks={"response": [refuse_compressed]}),
        ) as client:
            return _read(
                await client.messages.create(
                    model=self._model, max_tokens=max_tokens, messages=messages, extra_body=fields
                )
            )


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


def _thinking_tokens(fields: Fields) -> int:
    """Return what thinking may take of the answer's limit, where the fields say so."""
    thinking = fields.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    return budget if isinstance(budget, int) else 0
