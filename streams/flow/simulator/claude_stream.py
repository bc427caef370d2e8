"""Claude's stream: what the Agent SDK and `--output-format stream-json` send."""

from schemas.records import Json
from streams.flow.simulator.claude_message import (
    CWD,
    VERSION,
    content_blocks,
    message_object,
    usage_object,
)
from streams.flow.simulator.rare_frames import RARE_FRAMES, context_usage
from streams.flow.simulator.session import (
    NO_TOKENS,
    CompactionAttempt,
    Dialect,
    EndReason,
    ModelResponse,
    SimulatedChain,
    SimulatedSession,
    TokenCounts,
    iso,
)

_HELPER_MODEL = "claude-haiku-4-5-20251001"
"""Claude Code asks a small model for titles and the like; its window is not the session's."""
_HELPER_WINDOW = 200_000
_HEARTBEAT_MS = 30_000
_TIMED = frozenset({"assistant", "user", "conversation_reset"})
"""Frames with a timestamp in all versions that have any."""
_BLOCKED = "Compaction blocked by PreCompact hook"
_SUMMARY = "This session is being continued from a previous conversation. "


class ClaudeStream(Dialect):
    """Every frame but control responses contains its session."""

    def __init__(self, session: SimulatedSession) -> None:
        self._session = session
        self._random = session.random
        self._plan = session.plan
        self._turn_usage = NO_TOKENS
        self._total = NO_TOKENS
        self._tool_use_id = ""
        self._is_compacted = False

    def begin(self, chain: SimulatedChain) -> None:
        """Send `init`; hook frames may come before it."""
        if self._random.chance(0.3):
            self._hook("SessionStart", "SessionStart:startup")
        self._init(chain)

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Send the user's message; before a subagent's, that its task started."""
        if chain.tool_use_id is not None:
            self._task("task_started", chain, {"description": text[:40], "prompt": text})
        self._user(chain, text)

    def respond(self, response: ModelResponse) -> None:
        """Send a response's frames: in some streams the raw events, then one per content block."""
        random = self._random
        message_id, request_id = random.key("msg_"), random.key("req_")
        if self._is_compacted:
            response = response._replace(is_compacted=True)
            self._is_compacted = False
        if self._plan.is_partial:
            self._events(response, message_id)
        text = random.text(random.size(350, 1.1, 20_000))
        blocks, tool_use_id = content_blocks(random, response, text, thinking=0.5)
        self._tool_use_id = tool_use_id or self._tool_use_id
        if response.is_compacted:
            blocks.insert(0, {"type": "compaction", "content": random.text(2_000)})
        for block in blocks:
            message = message_object(response, message_id, [block], 1)
            self._frame("assistant", response.chain, {"message": message, "request_id": request_id})
        self._turn_usage = self._turn_usage.plus(response.usage)
        if self._plan.rare and random.chance(self._plan.rare):
            self._rare(response.chain)

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Send the tool's result as a user message."""
        content: Json = [
            {
                "type": "tool_result",
                "tool_use_id": self._tool_use_id,
                "content": text,
                "is_error": False,
            }
        ]
        self._user(chain, content, {"tool_use_result": {"stdout": text[:2_000], "stderr": ""}})

    def compact(self, chain: SimulatedChain, attempt: CompactionAttempt) -> bool:
        """Send the attempt's frames in the order of real streams."""
        outcome, session = attempt.outcome, self._session
        if outcome == "server":
            self._is_compacted = True
            return True
        trigger = "manual" if attempt.is_manual else "auto"
        if attempt.is_manual or self._random.chance(0.3):
            self._hook("PreCompact", f"PreCompact:{trigger}")
        if outcome != "lost-start":
            self._status("compacting")
        if outcome in {"failed", "blocked"}:
            self._refuse(chain, attempt)
            return False
        if outcome != "lost-start":
            self._beat(3 if outcome == "slow" else attempt.duration_ms // _HEARTBEAT_MS)
        if outcome == "lost-end":
            session.wait(60_000, 200_000)
            return False
        session.now_ms += attempt.duration_ms % _HEARTBEAT_MS
        self._complete(chain, attempt, trigger)
        return True

    def _complete(self, chain: SimulatedChain, attempt: CompactionAttempt, trigger: str) -> None:
        self._hook("SessionStart", "SessionStart:compact")
        if attempt.outcome == "unmarked":
            self._status(None)
        elif attempt.outcome != "lost-start":
            self._status(None, {"compact_result": "success"})
        if attempt.is_manual:
            self._init(chain)
        self._boundary(chain, attempt, trigger)
        if attempt.is_manual:
            text = "<local-command-stdout>Compacted </local-command-stdout>"
            self._user(chain, text, {"isReplay": True})
            self.end_turn(chain, "completed")

    def _refuse(self, chain: SimulatedChain, attempt: CompactionAttempt) -> None:
        self._session.wait(500, 4_000)
        error = _BLOCKED if attempt.outcome == "blocked" else "too_few_groups"
        self._status(None, {"compact_result": "failed", "compact_error": error})
        if attempt.is_manual:
            self.end_turn(chain, "completed")

    def _beat(self, beats: int) -> None:
        for _ in range(beats):
            self._session.now_ms += _HEARTBEAT_MS
            self._status("compacting")

    def reset(self, chain: SimulatedChain) -> None:
        """Send `conversation_reset`."""
        self._frame(
            "conversation_reset",
            chain,
            {"new_conversation_id": self._random.uuid(), "trigger": "clear"},
        )

    def noise(self, chain: SimulatedChain) -> None:
        """Send a frame that is not a reading: rate limits, a task's totals, `/context`."""
        kind = self._random.choice(("rate", "task", "requesting", "usage"))
        if kind == "rate":
            self._frame("rate_limit_event", chain, {"rate_limit_info": {"status": "allowed"}})
        elif kind == "requesting":
            self._status("requesting")
        elif kind == "usage":
            response: Json = {
                "subtype": "success",
                "request_id": self._random.key("req_"),
                "response": context_usage(chain, self._plan.window),
            }
            self._session.emit({"type": "control_response", "response": response}, is_named=False)
        else:
            usage: Json = {"total_tokens": self._random.integer(4_000, 90_000), "tool_uses": 3}
            self._task("task_progress", chain, {"usage": usage, "last_tool_name": "Read"})

    def end_turn(self, chain: SimulatedChain, reason: EndReason) -> None:
        """Send the `result`: the turn's sum and the session's totals by model."""
        usage, self._turn_usage = self._turn_usage, NO_TOKENS
        self._total = self._total.plus(usage)
        helper = TokenCounts(self._random.integer(200, 900), 0, 0, 40)
        self._frame(
            "result",
            chain,
            {
                "subtype": "success" if reason == "completed" else "error_during_execution",
                "duration_ms": self._random.integer(2_000, 300_000),
                "is_error": reason != "completed",
                "num_turns": self._random.integer(1, 12),
                "result": "ok",
                "total_cost_usd": 0.05,
                "usage": {**usage_object(usage, usage.output), "iterations": []},
                "modelUsage": {
                    _HELPER_MODEL: _model_usage(helper, _HELPER_WINDOW, 32_000),
                    self._plan.model: _model_usage(self._total, self._plan.window, 64_000),
                },
                "permission_denials": [],
                "terminal_reason": reason,
            },
        )

    def _rare(self, chain: SimulatedChain) -> None:
        frame = RARE_FRAMES[self._random.choice(tuple(RARE_FRAMES))](chain, self._plan.window)
        if "hook_event_name" in frame:
            self._session.emit({"session_id": self._plan.session_id, **frame})
        else:
            self._frame(str(frame["type"]), chain, frame)

    def _init(self, chain: SimulatedChain) -> None:
        self._frame(
            "system",
            chain,
            {
                "subtype": "init",
                "cwd": CWD,
                "tools": ["Bash", "Read", "Edit", "Task", "WebSearch"],
                "mcp_servers": [{"name": "docs", "status": "connected"}],
                "model": self._plan.model,
                "permissionMode": "default",
                "slash_commands": ["compact", "context", "clear"],
                "claude_code_version": VERSION,
                "output_style": "default",
            },
        )

    def _boundary(self, chain: SimulatedChain, attempt: CompactionAttempt, trigger: str) -> None:
        anchor = self._random.uuid()
        metadata: dict[str, Json] = {"trigger": trigger, "pre_tokens": attempt.pre_tokens}
        if attempt.outcome != "unmarked":
            metadata["post_tokens"] = attempt.post_tokens
            metadata["preserved_messages"] = {"anchor_uuid": anchor, "uuids": [self._random.uuid()]}
        if attempt.outcome == "done":
            metadata["duration_ms"] = attempt.duration_ms
        self._frame("system", chain, {"subtype": "compact_boundary", "compact_metadata": metadata})
        summary = _SUMMARY + self._random.text(self._random.size(9_000, 0.4, 24_000))
        self._user(chain, summary, {"uuid": anchor, "isSynthetic": True})

    def _events(self, response: ModelResponse, message_id: str) -> None:
        chain = response.chain
        start: Json = {
            "type": "message_start",
            "message": message_object(response, message_id, [], 1),
        }
        self._frame("stream_event", chain, {"event": start})
        for index in range(self._random.integer(2, 6)):
            delta: Json = {"type": "text_delta", "text": self._random.text(40)}
            event: Json = {"type": "content_block_delta", "index": index, "delta": delta}
            self._frame("stream_event", chain, {"event": event})
        end: Json = {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": usage_object(response.usage, response.usage.output),
        }
        self._frame("stream_event", chain, {"event": end})

    def _status(self, status: str | None, more: dict[str, Json] | None = None) -> None:
        body: dict[str, Json] = {"subtype": "status", "status": status, **(more or {})}
        self._frame("system", None, body)

    def _hook(self, event: str, name: str) -> None:
        hook_id = self._random.key("h-")
        for subtype in ("hook_started", "hook_response"):
            self._frame(
                "system",
                None,
                {"subtype": subtype, "hook_id": hook_id, "hook_name": name, "hook_event": event},
            )

    def _task(self, subtype: str, chain: SimulatedChain, more: dict[str, Json]) -> None:
        task_id = chain.agent_id or f"{self._random.tag}b{self._random.integer(0, 9)}"
        body: dict[str, Json] = {"subtype": subtype, "task_id": task_id, **more}
        body["tool_use_id"] = chain.tool_use_id
        self._frame("system", None, body)

    def _user(
        self, chain: SimulatedChain, content: Json, more: dict[str, Json] | None = None
    ) -> None:
        message: Json = {"role": "user", "content": content}
        self._frame("user", chain, {"message": message, **(more or {})})

    def _frame(self, kind: str, chain: SimulatedChain | None, more: dict[str, Json]) -> None:
        body: dict[str, Json] = {"type": kind, **more}
        if chain is not None and kind in {"assistant", "user", "stream_event"}:
            body["parent_tool_use_id"] = chain.tool_use_id
            if chain.agent_id is not None:
                body["agent_id"] = chain.agent_id
                body["subagent_type"] = "general-purpose"
        if self._plan.has_timestamps and (kind in _TIMED or self._plan.is_late):
            body["timestamp"] = iso(self._session.now_ms)
        body.setdefault("uuid", self._random.uuid())
        body["session_id"] = self._plan.session_id
        self._session.emit(body)


def _model_usage(usage: TokenCounts, window: int, most_output: int) -> dict[str, Json]:
    return {
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cacheReadInputTokens": usage.read,
        "cacheCreationInputTokens": usage.creation,
        "webSearchRequests": 0,
        "costUSD": 0.05,
        "contextWindow": window,
        "maxOutputTokens": most_output,
    }
