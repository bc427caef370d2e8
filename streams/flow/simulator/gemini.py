"""Gemini: a publisher sends the responses of `generateContent` as they came."""

from schemas.records import Json
from streams.flow.simulator.openai import Published
from streams.flow.simulator.scene import Response


class Gemini(Published):
    """Cached tokens are inside the prompt; the Python client's spelling is snake_case."""

    def respond(self, response: Response) -> None:
        """Send one response, in the wire's spelling or the Python client's."""
        draw, usage = self._draw, response.usage
        text: Json = {"text": draw.text(draw.size(600, 1.0, 16_000))}
        content: Json = {"role": "model", "parts": [text]}
        body: dict[str, Json] = {"candidates": [{"content": content, "finishReason": "STOP"}]}
        if draw.chance(0.3):
            body["usage_metadata"] = {
                "prompt_token_count": usage.used,
                "cached_content_token_count": usage.read,
                "candidates_token_count": usage.output,
                "total_token_count": usage.used + usage.output,
            }
            body["model_version"] = response.chain.model
            body["response_id"] = draw.key("")
        else:
            body["usageMetadata"] = {
                "promptTokenCount": usage.used,
                "cachedContentTokenCount": usage.read,
                "candidatesTokenCount": usage.output,
                "thoughtsTokenCount": usage.output // 3,
                "totalTokenCount": usage.used + usage.output,
            }
            body["modelVersion"] = response.chain.model
            body["responseId"] = draw.key("")
        self._publish(body, response.chain)
