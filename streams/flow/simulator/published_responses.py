"""OpenAI's two interfaces: a publisher sends the response objects as they came.

Prompts go as plain `user` messages. The session, the uuid and the time are the publisher's.
"""

from schemas.records import Json
from streams.flow.simulator.session import iso
from streams.flow.simulator.session import SimulatedChain, CompactionAttempt, EndReason, ModelResponse, SimulatedSession, TokenCounts


class Published:
    """What is common to runtimes without a stream of their own: the publisher's fields."""

    def __init__(self, session: SimulatedSession) -> None:
        self._session = session
        self._random = session.random
        self._plan = session.plan

    def begin(self, chain: SimulatedChain) -> None:
        """Send nothing: there is no opening message."""

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Send the prompt as a plain user message."""
        message: Json = {"role": "user", "content": text}
        self._publish({"type": "user", "message": message}, chain)

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Send the tool's answer as a plain user message."""
        content: Json = [{"type": "tool_result", "content": text}]
        message: Json = {"role": "user", "content": content}
        self._publish({"type": "user", "message": message}, chain)

    def reset(self, chain: SimulatedChain) -> None:
        """Send a `conversation_reset`, which any publisher may."""
        self._publish({"type": "conversation_reset", "trigger": "clear"}, chain)

    def noise(self, chain: SimulatedChain) -> None:
        """Send a type that nobody knows."""
        self._publish({"type": "heartbeat", "note": self._random.text(40)}, chain)

    def end_turn(self, chain: SimulatedChain, reason: EndReason) -> None:
        """Send a `result` only where it says something."""
        if reason != "completed":
            self._publish({"type": "result", "is_error": True, "terminal_reason": reason}, chain)

    def compact(self, chain: SimulatedChain, compaction: CompactionAttempt) -> bool:
        """Send nothing: the client dropped old messages, and only the next reading shows it."""
        del chain
        self._session.now_ms += compaction.duration_ms
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


class OpenAIChat(Published):
    """Chat completions; cached tokens are inside the prompt."""

    def respond(self, response: ModelResponse) -> None:
        """Send one completion object."""
        random = self._random
        message: Json = {"role": "assistant", "content": random.text(random.size(500, 1.0, 16_000))}
        choice: Json = {"index": 0, "message": message, "finish_reason": "stop"}
        body: dict[str, Json] = {
            "id": random.key("chatcmpl-"),
            "object": "chat.completion",
            "created": self._session.now_ms // 1000,
            "model": response.chain.model,
            "choices": [choice],
            "usage": {
                "prompt_tokens": response.usage.used,
                "completion_tokens": response.usage.output,
                "total_tokens": response.usage.used + response.usage.output,
                "prompt_tokens_details": {"cached_tokens": response.usage.read},
            },
        }
        self._publish(body, response.chain)


class OpenAIResponses(Published):
    """Responses; a server-side compaction is an item of the next response's output."""

    def __init__(self, session: SimulatedSession) -> None:
        super().__init__(session)
        self._compacted = False

    def respond(self, response: ModelResponse) -> None:
        """Send one response object, with a compaction item where one was made."""
        random = self._random
        text: Json = {"type": "output_text", "text": random.text(random.size(500, 1.0, 16_000))}
        output: list[Json] = [{"type": "message", "role": "assistant", "content": [text]}]
        if self._compacted:
            self._compacted = False
            output.insert(0, {
                "id": random.key("cmp_"), "type": "compaction", "encrypted_content": random.key("")
            })  # fmt: skip
        body: dict[str, Json] = {
            "id": random.key("resp_"),
            "object": "response",
            "created_at": self._session.now_ms // 1000,
            "model": response.chain.model,
            "output": output,
            "usage": _responses_usage(response.usage),
        }
        self._publish(body, response.chain)

    def compact(self, chain: SimulatedChain, compaction: CompactionAttempt) -> bool:
        """Remember to put the item into the next response."""
        self._compacted = True
        return super().compact(chain, compaction)


def _responses_usage(usage: TokenCounts) -> dict[str, Json]:
    return {
        "input_tokens": usage.used,
        "input_tokens_details": {"cached_tokens": usage.read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.output // 2},
        "total_tokens": usage.used + usage.output,
    }
