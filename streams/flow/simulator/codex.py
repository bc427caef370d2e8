"""Codex rollouts: the first line contains the session, no later line does."""

from schemas.records import Json
from streams.flow.simulator.claude_message import CWD
from streams.flow.simulator.session import (
    NO_TOKENS,
    CompactionAttempt,
    ModelResponse,
    SessionPlan,
    SimulatedChain,
    SimulatedSession,
    SimulatedTokens,
    iso,
)

_RATE_LIMITS: Json = {"primary": {"used_percent": 7.0, "window_minutes": 300}, "plan_type": None}


class Codex(SimulatedSession):
    """`token_count` lines report the size, some of them twice; cached tokens are included."""

    def __init__(self, plan: SessionPlan) -> None:
        super().__init__(plan)
        self._total = _counts(NO_TOKENS)
        self._last: dict[str, int] | None = None
        self._call, self._call_id = "function_call", ""
        self._turns = 0
        self._instructions = self.random.text(2_000)

    def file_of(self, agent_id: str | None) -> str:
        """Return the rollout's file."""
        del agent_id
        return f"codex/rollout-{self.plan.session_id}.jsonl"

    def begin(self) -> None:
        """Write the session's facts, and the instructions."""
        self._line(
            "session_meta",
            id=self.plan.session_id,
            timestamp=iso(self.now_ms),
            cwd=CWD,
            originator="codex_exec",
            cli_version="0.89.0",
            model_provider="openai",
            base_instructions={"text": self.random.text(7_000)},
        )
        self._message("developer", "input_text", self.random.text(900))

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Write the prompt, and the turn's context."""
        self._turns += 1
        self._event(
            "task_started", turn_id=f"t{self._turns}", model_context_window=self.plan.window
        )
        self._message("user", "input_text", text)
        self._event("user_message", message=text, images=[])
        self._turn_context(chain)
        self._event("token_count", info=None, rate_limits=_RATE_LIMITS)

    def respond(self, response: ModelResponse) -> None:
        """Write a response's items and its counts."""
        random = self.random
        thought = random.text(50)
        self._event("agent_reasoning", text=thought)
        self._item(
            "reasoning",
            summary=[{"type": "summary_text", "text": thought}],
            content=None,
            encrypted_content=random.text(random.size(900, 0.3, 4_000)),
        )
        if response.tool:
            self._call_id = random.key("call_")
            self._call = random.choice(("function_call", "function_call", "custom_tool_call"))
            arguments = f'{{"cmd":{random.integer(1, 999)}}}'
            call: dict[str, Json] = {"name": "apply_patch", "input": arguments}
            if self._call == "function_call":
                call = {"name": "exec_command", "arguments": arguments}
            self._item(self._call, **call, call_id=self._call_id)
        else:
            text = random.text(random.size(400, 1.0, 9_000))
            self._event("agent_message", message=text)
            self._message("assistant", "output_text", text)
        self._last = _counts(response.usage)
        self._total = {name: self._total[name] + count for name, count in self._last.items()}
        self._token_count(self._last)

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Write the tool's output; before the next call, the context and the same counts again."""
        self._item(f"{self._call}_output", call_id=self._call_id, output=text)
        self._turn_context(chain)
        if self._last is not None:
            self._token_count(self._last)

    def compact(self, chain: SimulatedChain, attempt: CompactionAttempt) -> bool:
        """Write a `compacted` line, and counts of zero with an estimate; failures leave nothing."""
        del chain
        if attempt.outcome in {"failed", "blocked", "lost-end"}:
            return False
        self.now_ms += attempt.duration_ms
        summary = self.random.text(self.random.size(4_000, 0.4, 12_000))
        self._line("compacted", message=summary)
        self._token_count(_counts(NO_TOKENS) | {"total_tokens": attempt.post_tokens})
        item: Json = {"type": "ContextCompaction", "id": self.random.key("item_")}
        self._event(
            "item_completed",
            turn_id=f"t{self._turns}",
            item=item,
            started_at_ms=self.now_ms - attempt.duration_ms,
            completed_at_ms=self.now_ms,
        )
        self._last = None
        return True

    def noise(self, chain: SimulatedChain) -> None:
        """Write rate limits, without counts."""
        del chain
        self._event("token_count", info=None, rate_limits=_RATE_LIMITS)

    def _token_count(self, last: dict[str, int]) -> None:
        info: dict[str, Json] = {
            "total_token_usage": {**self._total},
            "last_token_usage": {**last},
            "model_context_window": self.plan.window,
        }
        self._event("token_count", info=info, rate_limits=_RATE_LIMITS)

    def _turn_context(self, chain: SimulatedChain) -> None:
        self._line(
            "turn_context",
            cwd=CWD,
            approval_policy="never",
            model=chain.model,
            effort="high",
            summary="auto",
            user_instructions=self._instructions,
        )

    def _message(self, role: str, kind: str, text: str) -> None:
        self._item("message", role=role, content=[{"type": kind, "text": text}])

    def _event(self, kind: str, **fields: Json) -> None:
        self._line("event_msg", type=kind, **fields)

    def _item(self, kind: str, **fields: Json) -> None:
        self._line("response_item", type=kind, **fields)

    def _line(self, kind: str, **payload: Json) -> None:
        self.emit({"timestamp": iso(self.now_ms), "type": kind, "payload": payload}, is_named=False)


def _counts(usage: SimulatedTokens) -> dict[str, int]:
    return {
        "input_tokens": usage.used,
        "cached_input_tokens": usage.read,
        "output_tokens": usage.output,
        "reasoning_output_tokens": usage.output // 3,
        "total_tokens": usage.used + usage.output,
    }
