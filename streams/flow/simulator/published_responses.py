"""OpenAI and Gemini: a publisher sends the API's response objects unchanged.

Prompts go as plain `user` messages. The publisher adds the session, the uuid and the time.
"""

from schemas.records import Json
from streams.flow.simulator.session import (
    CompactionAttempt,
    Dialect,
    EndReason,
    ModelResponse,
    SimulatedChain,
    SimulatedSession,
    iso,
)


class _Published(Dialect):
    """Runtimes without a stream of their own. Cached tokens are included in the prompt's."""

    def __init__(self, session: SimulatedSession) -> None:
        self._session = session
        self._random = session.random
        self._plan = session.plan

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Send the prompt as a plain user message."""
        message: Json = {"role": "user", "content": text}
        self._publish({"type": "user", "message": message}, chain)

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Send the tool's result as a plain user message."""
        content: Json = [{"type": "tool_result", "content": text}]
        message: Json = {"role": "user", "content": content}
        self._publish({"type": "user", "message": message}, chain)

    def reset(self, chain: SimulatedChain) -> None:
        """Send a `conversation_reset`, which any publisher may."""
        self._publish({"type": "conversation_reset", "trigger": "clear"}, chain)

    def noise(self, chain: SimulatedChain) -> None:
        """Send a message of an unknown type."""
        self._publish({"type": "heartbeat", "note": self._random.text(40)}, chain)

    def end_turn(self, chain: SimulatedChain, reason: EndReason) -> None:
        """Send a `result` only if the turn failed."""
        if reason != "completed":
            self._publish({"type": "result", "is_error": True, "terminal_reason": reason}, chain)

    def compact(self, chain: SimulatedChain, attempt: CompactionAttempt) -> bool:
        """Send nothing: the client dropped old messages, and only the next reading shows it."""
        del chain
        self._session.now_ms += attempt.duration_ms
        return True

    def _publish(self, body: dict[str, Json], chain: SimulatedChain) -> None:
        if chain.agent_id is not None:
            body["agent_id"] = chain.agent_id
            body["parent_tool_use_id"] = chain.tool_use_id
        body["session_id"] = self._plan.session_id
        body["uuid"] = self._random.uuid()
        if self._plan.has_timestamps:
            body["timestamp"] = iso(self._session.now_ms)
        self._session.emit(body)


class OpenAIChat(_Published):
    """OpenAI's chat completions."""

    def respond(self, response: ModelResponse) -> None:
        """Send one completion object."""
        random, usage = self._random, response.usage
        message: Json = {"role": "assistant", "content": random.text(random.size(500, 1.0, 16_000))}
        choice: Json = {"index": 0, "message": message, "finish_reason": "stop"}
        body: dict[str, Json] = {
            "id": random.key("chatcmpl-"),
            "object": "chat.completion",
            "created": self._session.now_ms // 1000,
            "model": response.chain.model,
            "choices": [choice],
            "usage": {
                "prompt_tokens": usage.used,
                "completion_tokens": usage.output,
                "total_tokens": usage.used + usage.output,
                "prompt_tokens_details": {"cached_tokens": usage.read},
            },
        }
        self._publish(body, response.chain)


class OpenAIResponses(_Published):
    """OpenAI's Responses; a server-side compaction is an item of the next response's output."""

    _is_compacted = False

    def respond(self, response: ModelResponse) -> None:
        """Send one response object, with a compaction item if there was a compaction."""
        random, usage = self._random, response.usage
        text: Json = {"type": "output_text", "text": random.text(random.size(500, 1.0, 16_000))}
        output: list[Json] = [{"type": "message", "role": "assistant", "content": [text]}]
        if self._is_compacted:
            self._is_compacted = False
            output.insert(0, {
                "id": random.key("cmp_"), "type": "compaction", "encrypted_content": random.key("")
            })  # fmt: skip
        body: dict[str, Json] = {
            "id": random.key("resp_"),
            "object": "response",
            "created_at": self._session.now_ms // 1000,
            "model": response.chain.model,
            "output": output,
            "usage": {
                "input_tokens": usage.used,
                "input_tokens_details": {"cached_tokens": usage.read},
                "output_tokens": usage.output,
                "output_tokens_details": {"reasoning_tokens": usage.output // 2},
                "total_tokens": usage.used + usage.output,
            },
        }
        self._publish(body, response.chain)

    def compact(self, chain: SimulatedChain, attempt: CompactionAttempt) -> bool:
        """Leave the compaction item to the next response."""
        self._is_compacted = True
        return super().compact(chain, attempt)


class Gemini(_Published):
    """Gemini's `generateContent`."""

    def respond(self, response: ModelResponse) -> None:
        """Send one response, in the REST API's names or the Python client's snake_case."""
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
