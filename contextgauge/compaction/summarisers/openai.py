"""OpenAI's two APIs, and all servers that speak the first: the extra `openai`."""

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
    from openai import AsyncOpenAI
    from openai.types import CompletionUsage
    from openai.types.chat import (
        ChatCompletion,
        ChatCompletionMessage,
        ChatCompletionMessageParam,
    )
    from openai.types.responses import Response, ResponseInputParam

_STOPS: Final[Mapping[str | None, Stop]] = {
    "stop": "end",
    "tool_calls": "end",
    "function_call": "end",
    "length": "length",
    "content_filter": "refusal",
}


class _OpenAIModel(SdkModel):
    """What both APIs share."""

    provider = package = "openai"
    key_variable = "OPENAI_API_KEY"

    def _client(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # noqa: PLC0415 -- an extra

        return AsyncOpenAI(
            api_key=self._api_key,
            base_url=self._base_url,
            max_retries=0,
            timeout=None,
            default_headers=UNCOMPRESSED,
            http_client=DefaultAsyncHttpxClient(event_hooks={"response": [refuse_compressed]}),
        )


class ChatModel(_OpenAIModel):
    """A model behind the Chat Completions API: OpenAI's, or of any compatible server."""

    @property
    def name(self) -> str:
        """Provider and model; `compatible` for a server at another address."""
        return f"{'compatible' if self._base_url else self.provider}/{self._model}"

    async def answer(self, prompt: Prompt) -> Answer:
        """Call the model once. Raises what the SDK raises."""
        messages = write_sendable(prompt.messages, "openai-chat")
        if prompt.system:
            messages.insert(0, {"role": "system", "content": prompt.system})
        written = cast("list[ChatCompletionMessageParam]", messages)
        fields = self._fields(prompt, **self._limit(prompt.max_tokens))
        async with self._client() as client:
            return _read_completion(
                await client.chat.completions.create(
                    model=self._model, messages=written, extra_body=fields
                )
            )

    def _limit(self, max_tokens: int) -> Fields:
        """Return the fields that OpenAI has now, or those that compatible servers know."""
        return {"max_tokens" if self._base_url else "max_completion_tokens": max_tokens}


def _read_completion(completion: "ChatCompletion") -> Answer:
    choice = next(iter(completion.choices or ()), None)
    if choice is None:
        return Answer((), "cut", model=completion.model)
    message = choice.message
    return Answer(
        (message.content,) if message.content else (),
        "refusal" if message.refusal else _STOPS.get(choice.finish_reason, "cut"),
        len(message.tool_calls or ()),
        _has_reasoning(message),
        completion.model,
        *_counts(completion.usage),
    )


def _has_reasoning(message: "ChatCompletionMessage") -> bool:
    """Whether a compatible server reports reasoning, in a field that OpenAI does not have."""
    further = message.model_extra or {}
    return bool(further.get("reasoning_content") or further.get("reasoning"))


def _counts(usage: "CompletionUsage | None") -> tuple[int | None, int | None, int | None]:
    if usage is None:
        return None, None, None
    details = usage.prompt_tokens_details
    return usage.prompt_tokens, details.cached_tokens if details else None, usage.completion_tokens


class ResponsesModel(_OpenAIModel):
    """A model behind OpenAI's Responses API: for conversations that are held through it.

    Nothing is stored at the provider.
    """

    async def answer(self, prompt: Prompt) -> Answer:
        """Call the model once. Raises what the SDK raises."""
        written = cast("ResponseInputParam", write_sendable(prompt.messages, "openai-responses"))
        fields = self._fields(
            prompt,
            instructions=prompt.system,
            max_output_tokens=prompt.max_tokens,
        )
        async with self._client() as client:
            return _read_response(
                await client.responses.create(
                    model=self._model, input=written, store=False, extra_body=fields
                )
            )


def _read_response(response: "Response") -> Answer:
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    incomplete = response.incomplete_details.reason if response.incomplete_details else None
    stop: Stop = "end" if response.status == "completed" else "cut"
    if incomplete == "max_output_tokens":
        stop = "length"
    if incomplete == "content_filter" or any(part.type == "refusal" for part in parts):
        stop = "refusal"
    usage = response.usage
    return Answer(
        tuple(part.text for part in parts if part.type == "output_text"),
        stop,
        sum(item.type.endswith("_call") for item in response.output),
        any(item.type == "reasoning" for item in response.output),
        response.model,
        usage.input_tokens if usage else None,
        usage.input_tokens_details.cached_tokens if usage else None,
        usage.output_tokens if usage else None,
    )
