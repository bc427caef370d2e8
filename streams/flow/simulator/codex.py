"""Codex rollouts: the head names the session, no line after it does."""

from schemas.records import Json
from streams.flow.simulator.claude_stream import iso
from streams.flow.simulator.scene import Chain, Compaction, EndReason, Response, Scene, Usage

_COUNTS = ("input_tokens", "cached_input_tokens", "output_tokens", "total_tokens")


class Codex:
    """`token_count` lines tell the size, and repeat it; the cached tokens are inside."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._draw = scene.draw
        self._plan = scene.plan
        self._total = dict.fromkeys(_COUNTS, 0)
        self._call_id = ""

    def begin(self, chain: Chain) -> None:
        """Write the head."""
        del chain
        self._line(
            "session_meta",
            {
                "id": self._plan.session_id,
                "timestamp": iso(self._scene.now_ms),
                "cwd": "/srv/repo",
                "originator": "codex_exec",
                "cli_version": "0.89.0",
                "model_provider": "openai",
                "base_instructions": {"text": self._draw.text(7_000)},
            },
        )

    def prompt(self, chain: Chain, text: str) -> None:
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
                "user_instructions": self._draw.text(2_000),
            },
        )
        self._line("event_msg", {"type": "token_count", "info": None})

    def respond(self, response: Response) -> None:
        """Write a response's items and its counts, often twice."""
        draw = self._draw
        summary: Json = [{"type": "summary_text", "text": draw.text(50)}]
        secret = draw.text(draw.size(900, 0.3, 4_000))
        self._line(
            "response_item", {"type": "reasoning", "summary": summary, "encrypted_content": secret}
        )
        if response.tool:
            self._call_id = draw.key("call_")
            arguments = f'{{"cmd":{draw.whole(1, 999)}}}'
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
            text: Json = [{"type": "output_text", "text": draw.text(draw.size(400, 1.0, 9_000))}]
            self._line("response_item", {"type": "message", "role": "assistant", "content": text})
        counts = _counts(response.usage)
        self._total = {name: self._total[name] + counts[name] for name in _COUNTS}
        for _ in range(2 if draw.chance(0.5) else 1):
            info: dict[str, Json] = {
                "total_token_usage": {**self._total},
                "last_token_usage": {**counts},
                "model_context_window": self._plan.window,
            }
            self._line("event_msg", {"type": "token_count", "info": info})

    def tool_result(self, chain: Chain, text: str) -> None:
        """Write the tool's output."""
        del chain
        self._line(
            "response_item",
            {"type": "function_call_output", "call_id": self._call_id, "output": text},
        )

    def compact(self, chain: Chain, compaction: Compaction) -> bool:
        """Write a `compacted` line; failures leave none."""
        del chain
        if compaction.outcome in {"failed", "blocked", "lost-end"}:
            return False
        self._scene.now_ms += compaction.duration_ms
        summary = self._draw.text(self._draw.size(4_000, 0.4, 12_000))
        self._line("compacted", {"message": summary})
        return True

    def reset(self, chain: Chain) -> None:
        """Write nothing: a cleared conversation is a new rollout."""

    def noise(self, chain: Chain) -> None:
        """Write a line that means nothing."""
        del chain
        self._line("event_msg", {"type": "agent_reasoning", "text": self._draw.text(60)})

    def end_turn(self, chain: Chain, reason: EndReason) -> None:
        """Write nothing: a rollout has no line for it that matters."""

    def _line(self, kind: str, payload: dict[str, Json]) -> None:
        body: dict[str, Json] = {
            "timestamp": iso(self._scene.now_ms),
            "type": kind,
            "payload": payload,
        }
        self._scene.emit(body, is_named=False)


def _counts(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.used,
        "cached_input_tokens": usage.read,
        "output_tokens": usage.output,
        "total_tokens": usage.used + usage.output,
    }
