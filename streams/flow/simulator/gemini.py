"""Gemini: a publisher sends the responses of `generateContent` as they came."""

from schemas.records import Json
from streams.flow.simulator.published_responses import Published
from streams.flow.simulator.session import ModelResponse


class Gemini(Published):
    """Cached tokens are inside the prompt; the Python client's dialect is snake_case."""

    def respond(self, response: ModelResponse) -> None:
        """Send one response, in the wire's dialect or the Python client's."""
        random, usage = self._random, response.usage
        text: Json = {"text": random.text(random.size(600, 1.0, 16_000))}
        content: Json = {"role": "model", "parts": [text]}
        body: dict[str, Json] = {"candidates": [{"content": content, "finishReason": "STOP"}]}
        if random.chance(0.3):
            body["usage_metadata"] = {
                "prompt_token_count": usage.used,
                "cached_content_token_count": usage.read,
                "candidates_token_count": usage.output,
                "total_token_count": usage.used + usage.output,
            }
            body["model_version"] = response.chain.model
            body["response_id"] = random.key("")
        else:
            body["usageMetadata"] = {
                "promptTokenCount": usage.used,
                "cachedContentTokenCount": usage.read,
                "candidatesTokenCount": usage.output,
                "thoughtsTokenCount": usage.output // 3,
                "totalTokenCount": usage.used + usage.output,
            }
            body["modelVersion"] = response.chain.model
            body["responseId"] = random.key("")
        self._publish(body, response.chain)
