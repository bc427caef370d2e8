"""Codex rollouts: the head names the session, no line after it does."""

from schemas.records import Json
from streams.flow.simulator.session import iso
from streams.flow.simulator.session import SimulatedChain, CompactionAttempt, EndReason, ModelResponse, SimulatedSession, TokenCounts

_COUNTS = ("input_tokens", "cached_input_tokens", "output_tokens", "total_tokens")


class Codex:
    """`token_count` lines session_messages the size, and repeat it; the cached tokens are inside."""

    def __init__(self, session: SimulatedSession) -> None:
        self._session = session
        self._random = session.random
        self._plan = session.plan
        self._total = dict.fromkeys(_COUNTS, 0)
        self._call_id = ""

    def begin(self, chain: SimulatedChain) -> None:
        """Write the head."""
        del chain
        self._line(
            "session_meta",
            {
                "id": self._plan.session_id,
                "timestamp": iso(self._session.now_ms),
                "cwd": "/srv/repo",
                "originator": "codex_exec",
                "cli_version": "0.89.0",
                "model_provider": "openai",
                "base_instructions": {"text": self._random.text(7_000)},
            },
        )

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Write the prompt, and the turn's context."""
        content: Json = [{"type": "input_text", "text": text}]
        self._line("response_item", {"type": "message", "role": "user", "content": content})
        self._line("event_msg", {"type": "user_message", "message": text, "images": []})
        self._line(
            "turn_context",
            {
                "cwd": "/srv/repo",
                "approval_policy": "never",
                "model": chain.model,
                "effort": "high",
                "user_instructions": self._random.text(2_000),
            },
        )
        self._line("event_msg", {"type": "token_count", "info": None})

    def respond(self, response: ModelResponse) -> None:
        """Write a response's items and its counts, often twice."""
        random = self._random
        summary: Json = [{"type": "summary_text", "text": random.text(50)}]
        secret = random.text(random.size(900, 0.3, 4_000))
        self._line(
            "response_item", {"type": "reasoning", "summary": summary, "encrypted_content": secret}
        )
        if response.tool:
            self._call_id = random.key("call_")
            arguments = f'{{"cmd":{random.integer(1, 999)}}}'
            self._line(
                "response_item",
                {
                    "type": "function_call",
                    "name": "exec_command",
                    "arguments": arguments,
                    "call_id": self._call_id,
                },
            )
        else:
            text: Json = [{"type": "output_text", "text": random.text(random.size(400, 1.0, 9_000))}]
            self._line("response_item", {"type": "message", "role": "assistant", "content": text})
        counts = _counts(response.usage)
        self._total = {name: self._total[name] + counts[name] for name in _COUNTS}
        for _ in range(2 if random.chance(0.5) else 1):
            info: dict[str, Json] = {
                "total_token_usage": {**self._total},
                "last_token_usage": {**counts},
                "model_context_window": self._plan.window,
            }
            self._line("event_msg", {"type": "token_count", "info": info})

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Write the tool's output."""
        del chain
        self._line(
            "response_item",
            {"type": "function_call_output", "call_id": self._call_id, "output": text},
        )

    def compact(self, chain: SimulatedChain, compaction: CompactionAttempt) -> bool:
        """Write a `compacted` line; failures leave none."""
        del chain
        if compaction.outcome in {"failed", "blocked", "lost-end"}:
            return False
        self._session.now_ms += compaction.duration_ms
        summary = self._random.text(self._random.size(4_000, 0.4, 12_000))
        self._line("compacted", {"message": summary})
        return True

    def reset(self, chain: SimulatedChain) -> None:
        """Write nothing: a cleared conversation is a new rollout."""

    def noise(self, chain: SimulatedChain) -> None:
        """Write a line that means nothing."""
        del chain
        self._line("event_msg", {"type": "agent_reasoning", "text": self._random.text(60)})

    def end_turn(self, chain: SimulatedChain, reason: EndReason) -> None:
        """Write nothing: a rollout has no line for it that matters."""

    def _line(self, kind: str, payload: dict[str, Json]) -> None:
        body: dict[str, Json] = {
            "timestamp": iso(self._session.now_ms),
            "type": kind,
            "payload": payload,
        }
        self._session.emit(body, is_named=False)


def _counts(usage: TokenCounts) -> dict[str, int]:
    return {
        "input_tokens": usage.used,
        "cached_input_tokens": usage.read,
        "output_tokens": usage.output,
        "total_tokens": usage.used + usage.output,
    }
