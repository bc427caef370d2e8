"""Gemini's API, through the official SDK: the extra `gemini`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from contextgauge.compaction.formats import write_sendable
from contextgauge.compaction.summarisers.model import UNCOMPRESSED, Answer, SdkModel, Stop
from contextgauge.compaction.summarisers.prompts import Prompt
from contextgauge.normalise.usage import gemini_output

if TYPE_CHECKING:
    from google.genai.types import (
        ContentListUnionDict,
        GenerateContentConfigDict,
        GenerateContentResponse,
        GenerateContentResponseUsageMetadata,
    )

_STOPS: Final[Mapping[str | None, Stop]] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "MALFORMED_FUNCTION_CALL": "end",  # as a call: judged by what there is of it
    "UNEXPECTED_TOOL_CALL": "end",
    None: "cut",
}
"""All others are refusals, for safety or copyright."""


class GeminiModel(SdkModel):
    """A Gemini model. Further fields are those of the SDK's `GenerateContentConfig`."""

    provider = "gemini"
    key_variable = "GEMINI_API_KEY or GOOGLE_API_KEY"
    package = "google.genai"

    async def answer(self, prompt: Prompt) -> Answer:
        """Call the model once. Raises what the SDK raises."""
        from google.genai import Client, types  # noqa: PLC0415 -- an extra

        contents = cast("ContentListUnionDict", write_sendable(prompt.messages, "gemini"))
        config = cast(
            "GenerateContentConfigDict",
            self._fields(
                prompt,
                system_instruction=prompt.system,
                max_output_tokens=prompt.max_tokens,
            ),
        )
        options = types.HttpOptions(
            base_url=self._base_url,
            headers=dict(UNCOMPRESSED),
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        async with Client(api_key=self._api_key, http_options=options).aio as client:
            return _read(
                await client.models.generate_content(
                    model=self._model, contents=contents, config=config
                )
            )


def _read(reply: "GenerateContentResponse") -> Answer:
    candidate = next(iter(reply.candidates or ()), None)
    parts = (candidate and candidate.content and candidate.content.parts) or ()
    text = "".join(each.text or "" for each in parts if not each.thought)
    finish = candidate.finish_reason.value if candidate and candidate.finish_reason else None
    if reply.prompt_feedback and reply.prompt_feedback.block_reason:
        finish = "SAFETY"
    usage = reply.usage_metadata
    return Answer(
        (text,) if text else (),
        _STOPS.get(finish, "refusal"),
        sum(each.function_call is not None for each in parts),
        any(each.thought for each in parts),
        reply.model_version,
        usage.prompt_token_count if usage else None,
        usage.cached_content_token_count if usage else None,
        None if usage is None else _output(usage),
    )


def _output(usage: "GenerateContentResponseUsageMetadata") -> int | None:
    return gemini_output(
        usage.candidates_token_count,
        usage.thoughts_token_count,
        prompt=usage.prompt_token_count,
        tool=usage.tool_use_prompt_token_count,
        total=usage.total_token_count,
    )
