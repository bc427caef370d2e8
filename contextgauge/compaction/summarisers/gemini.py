"""Gemini's API, through the official SDK: the extra `gemini`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from contextgauge.compaction.formats import write_messages
from contextgauge.compaction.summarisers.model import UNCOMPRESSED, Answer, SdkModel, Stop
from contextgauge.compaction.summarisers.prompts import Prompt

if TYPE_CHECKING:
    from google.genai.types import (
        ContentListUnionDict,
        GenerateContentConfigDict,
        GenerateContentResponse,
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
    package = "google.genai"

    async def answer(self, prompt: Prompt) -> Answer:
        """Call the model once. Raises what the SDK raises."""
        from google.genai import Client, types  # noqa: PLC0415 -- an extra

        contents = cast("ContentListUnionDict", write_messages(prompt.messages, "gemini"))
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
            if not self._stream:
                return _read(
                    [
                        await client.models.generate_content(
                            model=self._model, contents=contents, config=config
                        )
                    ]
                )
            chunks = await client.models.generate_content_stream(
                model=self._model, contents=contents, config=config
            )
            return _read([chunk async for chunk in chunks])


def _read(chunks: "Sequence[GenerateContentResponse]") -> Answer:
    text, calls, reasoned = "", 0, False
    finish: str | None = None
    for chunk in chunks:
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            finish = "SAFETY"
        for candidate in (chunk.candidates or ())[:1]:
            finish = str(candidate.finish_reason.value) if candidate.finish_reason else finish
            for part in (candidate.content and candidate.content.parts) or ():
                calls += part.function_call is not None
                reasoned = reasoned or bool(part.thought)
                text += "" if part.thought else part.text or ""
    usage = next((each.usage_metadata for each in reversed(chunks) if each.usage_metadata), None)
    return Answer(
        (text,) if text else (),
        _STOPS.get(finish, "refusal"),
        calls,
        reasoned,
        chunks[-1].model_version if chunks else None,
        usage.prompt_token_count if usage else None,
        usage.cached_content_token_count if usage else None,
        (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0) if usage else None,
    )
