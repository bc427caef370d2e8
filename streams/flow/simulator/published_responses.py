"""OpenAI and Gemini: a publisher sends the API's response objects unchanged.

Prompts go as plain `user` messages. The publisher adds the session, the uuid and the time.
"""

import re

from schemas.records import Json
from streams.flow.simulator.session import (
    CompactionAttempt,
    EndReason,
    ModelResponse,
    SimulatedChain,
    SimulatedSession,
    iso,
)


class _Published(SimulatedSession):
    """Runtimes without a stream of their own. Cached tokens are included in the prompt's."""

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Send the prompt as a plain user message."""
        self._publish(chain, type="user", message={"role": "user", "content": text})

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Send the tool's result as a plain user message."""
        content: Json = [{"type": "tool_result", "content": text}]
        self._publish(chain, type="user", message={"role": "user", "content": content})

    def reset(self) -> None:
        """Send a `conversation_reset`, which any publisher may."""
        self._publish(self.main, type="conversation_reset", trigger="clear")

    def noise(self, chain: SimulatedChain) -> None:
        """Send a message of an unknown type."""
        self._publish(chain, type="heartbeat", note=self.random.text(40))

    def end_turn(self, reason: EndReason) -> None:
        """Send a `result` only if the turn failed."""
        if reason != "completed":
            self._publish(self.main, type="result", is_error=True, terminal_reason=reason)

    def _publish(self, chain: SimulatedChain, **body: Json) -> None:
        if chain.agent_id is not None:
            body["agent_id"] = chain.agent_id
            body["parent_tool_use_id"] = chain.tool_use_id
        body["session_id"] = self.plan.session_id
        body["uuid"] = self.random.uuid()
        if self.plan.has_timestamps:
            body["timestamp"] = iso(self.now_ms)
        self.emit(body)


class OpenAIChat(_Published):
    """OpenAI's chat completions."""

    def respond(self, response: ModelResponse) -> None:
        """Send one completion object."""
        random, usage = self.random, response.usage
        message: Json = {"role": "assistant", "content": random.text(random.size(500, 1.0, 16_000))}
        self._publish(
            response.chain,
            id=random.key("chatcmpl-"),
            object="chat.completion",
            created=self.now_ms // 1000,
            model=response.chain.model,
            choices=[{"index": 0, "message": message, "finish_reason": "stop"}],
            usage={
                "prompt_tokens": usage.used,
                "completion_tokens": usage.output,
                "total_tokens": usage.used + usage.output,
                "prompt_tokens_details": {"cached_tokens": usage.read},
            },
        )


class OpenAIResponses(_Published):
    """OpenAI's Responses; a server-side compaction is an item of the next response's output."""

    _is_compacted = False

    def respond(self, response: ModelResponse) -> None:
        """Send one response object, with a compaction item if there was a compaction."""
        random, usage = self.random, response.usage
        text: Json = {"type": "output_text", "text": random.text(random.size(500, 1.0, 16_000))}
        output: list[Json] = [{"type": "message", "role": "assistant", "content": [text]}]
        if self._is_compacted:
            self._is_compacted = False
            output.insert(0, {
                "id": random.key("cmp_"), "type": "compaction", "encrypted_content": random.key("")
            })  # fmt: skip
        self._publish(
            response.chain,
            id=random.key("resp_"),
            object="response",
            created_at=self.now_ms // 1000,
            model=response.chain.model,
            output=output,
            usage={
                "input_tokens": usage.used,
                "input_tokens_details": {"cached_tokens": usage.read},
                "output_tokens": usage.output,
                "output_tokens_details": {"reasoning_tokens": usage.output // 2},
                "total_tokens": usage.used + usage.output,
            },
        )

    def compact(self, chain: SimulatedChain, attempt: CompactionAttempt) -> bool:
        """Leave the compaction item to the next response."""
        self._is_compacted = True
        return super().compact(chain, attempt)


class Gemini(_Published):
    """Gemini's `generateContent`."""

    def respond(self, response: ModelResponse) -> None:
        """Send one response, in the REST API's names or the Python client's snake_case."""
        random, usage = self.random, response.usage
        text: Json = {"text": random.text(random.size(600, 1.0, 16_000))}
        content: Json = {"role": "model", "parts": [text]}
        is_python = random.chance(0.3)
        counts: dict[str, Json] = {
            "promptTokenCount": usage.used,
            "cachedContentTokenCount": usage.read,
            "candidatesTokenCount": usage.output,
            "thoughtsTokenCount": usage.output // 3,
            "totalTokenCount": usage.used + usage.output,
        }
        if is_python:
            del counts["thoughtsTokenCount"]
            counts = {_snake_case(name): count for name, count in counts.items()}
        rest: dict[str, Json] = {
            "usageMetadata": counts,
            "modelVersion": response.chain.model,
            "responseId": random.key(""),
        }
        if is_python:
            rest = {_snake_case(name): value for name, value in rest.items()}
        candidates: Json = [{"content": content, "finishReason": "STOP"}]
        self._publish(response.chain, candidates=candidates, **rest)


def _snake_case(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()
