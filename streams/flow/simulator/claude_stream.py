"""Claude's stream: what the Agent SDK and `--output-format stream-json` send."""

from schemas.records import Json
from streams.flow.simulator.claude_message import (
    CWD,
    VERSION,
    ClaudeSession,
    message_object,
    usage_object,
)
from streams.flow.simulator.session import (
    NO_TOKENS,
    SUBAGENT_TYPE,
    CompactionAttempt,
    EndReason,
    ModelResponse,
    SimulatedChain,
    SimulatedTokens,
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

NEUTRAL_FRAMES: tuple[dict[str, Json], ...] = (
    {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10,
     "retry_delay_ms": 700},
    {"type": "system", "subtype": "thinking_tokens", "estimated_tokens": 90},
    {"type": "system", "subtype": "background_tasks_changed", "tasks": []},
    {"type": "system", "subtype": "task_updated", "task_id": "t1",
     "patch": {"status": "completed"}},
    {"type": "system", "subtype": "task_notification", "task_id": "t1", "status": "completed",
     "usage": {"total_tokens": 21_000}},
    # A hook's input, which a hook may publish; it has no type.
    {"cwd": CWD, "hook_event_name": "PostCompact", "trigger": "auto"},
    {"cwd": CWD, "hook_event_name": "SessionStart", "source": "resume", "context_tokens": 90_000,
     "seconds_since_last_response": 300},
)  # fmt: skip
"""Those without effect on any figure."""


class ClaudeStream(ClaudeSession):
    """Every frame but control responses contains its session."""

    _turn_usage = NO_TOKENS
    _total = NO_TOKENS
    _is_compacted = False

    def begin(self) -> None:
        """Send `init`; hook frames may come before it."""
        if self.random.chance(0.3):
            self._hook("SessionStart", "SessionStart:startup")
        self._init()

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Send the user's message; before a subagent's, that its task started."""
        if chain.tool_use_id is not None:
            self._task("task_started", chain, description=text[:40], prompt=text)
        self._user(chain, text)

    def respond(self, response: ModelResponse) -> None:
        """Send a response's frames: in some streams the raw events, then one per content block."""
        random = self.random
        message_id, request_id = random.key("msg_"), random.key("req_")
        response = response._replace(is_compacted=self._is_compacted)
        self._is_compacted = False
        if self.plan.is_partial:
            self._events(response, message_id)
        text = random.text(random.size(350, 1.1, 20_000))
        blocks = self.content_blocks(response, text, thinking=0.5)
        if response.is_compacted:
            blocks.insert(0, {"type": "compaction", "content": random.text(2_000)})
        for block in blocks:
            message = message_object(response, message_id, [block], 1)
            self._frame("assistant", response.chain, message=message, request_id=request_id)
        self._turn_usage = self._turn_usage.plus(response.usage)
        if self.plan.rare and random.chance(self.plan.rare):
            self._rare(response.chain)

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Send the tool's result as a user message."""
        result: Json = {
            "type": "tool_result",
            "tool_use_id": self.tool_use_id,
            "content": text,
            "is_error": False,
        }
        self._user(chain, [result], tool_use_result={"stdout": text[:2_000], "stderr": ""})

    def compact(self, chain: SimulatedChain, attempt: CompactionAttempt) -> bool:
        """Send the attempt's frames in the order of real streams."""
        outcome = attempt.outcome
        if outcome == "server":
            self._is_compacted = True
            return True
        trigger = "manual" if attempt.is_manual else "auto"
        if attempt.is_manual or self.random.chance(0.3):
            self._hook("PreCompact", f"PreCompact:{trigger}")
        if outcome != "lost-start":
            self._status("compacting")
        if outcome in {"failed", "blocked"}:
            self.wait(500, 4_000)
            error = _BLOCKED if outcome == "blocked" else "too_few_groups"
            self._status(None, compact_result="failed", compact_error=error)
            if attempt.is_manual:
                self.end_turn("completed")
            return False
        if outcome != "lost-start":
            for _ in range(3 if outcome == "slow" else attempt.duration_ms // _HEARTBEAT_MS):
                self.now_ms += _HEARTBEAT_MS
                self._status("compacting")
        if outcome == "lost-end":
            self.wait(60_000, 200_000)
            return False
        self.now_ms += attempt.duration_ms % _HEARTBEAT_MS
        self._complete(chain, attempt, trigger)
        return True

    def _complete(self, chain: SimulatedChain, attempt: CompactionAttempt, trigger: str) -> None:
        self._hook("SessionStart", "SessionStart:compact")
        if attempt.outcome == "unmarked":
            self._status(None)
        elif attempt.outcome != "lost-start":
            self._status(None, compact_result="success")
        if attempt.is_manual:
            self._init()
        anchor = self.random.uuid()
        metadata: dict[str, Json] = {"trigger": trigger, "pre_tokens": attempt.pre_tokens}
        if attempt.outcome != "unmarked":
            metadata["post_tokens"] = attempt.post_tokens
            metadata["preserved_messages"] = {"anchor_uuid": anchor, "uuids": [self.random.uuid()]}
        if attempt.outcome == "done":
            metadata["duration_ms"] = attempt.duration_ms
        self._frame("system", subtype="compact_boundary", compact_metadata=metadata)
        summary = _SUMMARY + self.random.text(self.random.size(9_000, 0.4, 24_000))
        self._user(chain, summary, uuid=anchor, isSynthetic=True)
        if attempt.is_manual:
            text = "<local-command-stdout>Compacted </local-command-stdout>"
            self._user(chain, text, isReplay=True)
            self.end_turn("completed")

    def reset(self) -> None:
        """Send `conversation_reset`."""
        self._frame("conversation_reset", new_conversation_id=self.random.uuid(), trigger="clear")

    def noise(self, chain: SimulatedChain) -> None:
        """Send a frame that is not a reading: rate limits, a task's totals, `/context`."""
        kind = self.random.choice(("rate", "task", "requesting", "usage"))
        if kind == "rate":
            self._frame("rate_limit_event", rate_limit_info={"status": "allowed"})
        elif kind == "requesting":
            self._status("requesting")
        elif kind == "usage":
            response: Json = {
                "subtype": "success",
                "request_id": self.random.key("req_"),
                "response": context_usage(chain, self.plan.window),
            }
            self.emit({"type": "control_response", "response": response}, is_named=False)
        else:
            usage: Json = {"total_tokens": self.random.integer(4_000, 90_000), "tool_uses": 3}
            self._task("task_progress", chain, usage=usage, last_tool_name="Read")

    def end_turn(self, reason: EndReason) -> None:
        """Send the `result`: the turn's sum and the session's totals by model."""
        usage, self._turn_usage = self._turn_usage, NO_TOKENS
        self._total = self._total.plus(usage)
        helper = SimulatedTokens(self.random.integer(200, 900), 0, 0, 40)
        self._frame(
            "result",
            subtype="success" if reason == "completed" else "error_during_execution",
            duration_ms=self.random.integer(2_000, 300_000),
            is_error=reason != "completed",
            num_turns=self.random.integer(1, 12),
            result="ok",
            total_cost_usd=0.05,
            usage={**usage_object(usage, usage.output), "iterations": []},
            modelUsage={
                _HELPER_MODEL: _model_usage(helper, _HELPER_WINDOW, 32_000),
                self.plan.model: _model_usage(self._total, self.plan.window, 64_000),
            },
            permission_denials=[],
            terminal_reason=reason,
        )

    def _rare(self, chain: SimulatedChain) -> None:
        window = self.plan.window
        frame = self.random.choice(
            (*NEUTRAL_FRAMES, context_frame(chain, window), auto_compact_state(window))
        )
        if "hook_event_name" in frame:
            self.emit({"session_id": self.plan.session_id, **frame})
        else:
            self._frame(str(frame["type"]), chain, **frame)

    def _init(self) -> None:
        self._frame(
            "system",
            subtype="init",
            cwd=CWD,
            tools=["Bash", "Read", "Edit", "Task", "WebSearch"],
            mcp_servers=[{"name": "docs", "status": "connected"}],
            model=self.plan.model,
            permissionMode="default",
            slash_commands=["compact", "context", "clear"],
            claude_code_version=VERSION,
            output_style="default",
        )

    def _events(self, response: ModelResponse, message_id: str) -> None:
        usage, chain = response.usage, response.chain
        message = message_object(response, message_id, [], 1)
        self._frame("stream_event", chain, event={"type": "message_start", "message": message})
        for index in range(self.random.integer(2, 6)):
            delta: Json = {"type": "text_delta", "text": self.random.text(40)}
            event: Json = {"type": "content_block_delta", "index": index, "delta": delta}
            self._frame("stream_event", chain, event=event)
        end: Json = {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": usage_object(usage, usage.output),
        }
        self._frame("stream_event", chain, event=end)

    def _status(self, status: str | None, **fields: Json) -> None:
        self._frame("system", None, subtype="status", status=status, **fields)

    def _hook(self, event: str, name: str) -> None:
        hook_id = self.random.key("h-")
        for subtype in ("hook_started", "hook_response"):
            self._frame(
                "system", subtype=subtype, hook_id=hook_id, hook_name=name, hook_event=event
            )

    def _task(self, subtype: str, chain: SimulatedChain, **fields: Json) -> None:
        task_id = chain.agent_id or f"{self.random.tag}b{self.random.integer(0, 9)}"
        self._frame(
            "system",
            None,
            subtype=subtype,
            task_id=task_id,
            **fields,
            tool_use_id=chain.tool_use_id,
        )

    def _user(self, chain: SimulatedChain, content: Json, **fields: Json) -> None:
        self._frame("user", chain, message={"role": "user", "content": content}, **fields)

    def _frame(self, kind: str, chain: SimulatedChain | None = None, **fields: Json) -> None:
        body: dict[str, Json] = {"type": kind, **fields}
        if chain is not None and kind in {"assistant", "user", "stream_event"}:
            body["parent_tool_use_id"] = chain.tool_use_id
            if chain.agent_id is not None:
                body["agent_id"] = chain.agent_id
                body["subagent_type"] = SUBAGENT_TYPE
        if self.plan.has_timestamps and (kind in _TIMED or self.plan.is_late):
            body["timestamp"] = iso(self.now_ms)
        body.setdefault("uuid", self.random.uuid())
        body["session_id"] = self.plan.session_id
        self.emit(body)


def _model_usage(usage: SimulatedTokens, window: int, most_output: int) -> dict[str, Json]:
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


def context_frame(chain: SimulatedChain, window: int) -> dict[str, Json]:
    """Return the frame with which a session answers `/context`."""
    answer = context_usage(chain, window)
    usage: Json = {
        "model": answer["model"],
        "total_tokens": answer["totalTokens"],
        "raw_max_tokens": window,
        "percentage": answer["percentage"],
        "categories": answer["categories"],
    }
    message: Json = {
        "model": "<synthetic>",
        "role": "assistant",
        "content": [{"type": "text", "text": "## Context"}],
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    return {"type": "assistant", "message": message, "context_usage": usage}


def auto_compact_state(window: int) -> dict[str, Json]:
    """Return the frame that reports at which size the session compacts."""
    value: Json = {
        "effective_window": window,
        "threshold": window * 5 // 6,
        "enabled": True,
        "enforced": True,
        "source": "settings",
    }
    return {"type": "autocompact_state", "value": value}


def context_usage(chain: SimulatedChain, window: int) -> dict[str, Json]:
    """Return the answer to `get_context_usage`."""
    used = chain.used_tokens
    return {
        "categories": [
            {"id": "system_prompt", "name": "System prompt", "tokens": chain.system_tokens,
             "kind": "used"},
            {"id": "messages", "name": "Messages", "kind": "used",
             "tokens": max(0, used - chain.system_tokens)},
            {"id": "free_space", "name": "Free space", "tokens": max(0, window - used),
             "kind": "free"},
        ],
        "totalTokens": used,
        "maxTokens": window,
        "rawMaxTokens": window,
        "percentage": used * 100 // window,
        "model": chain.model,
        "autoCompactThreshold": window * 5 // 6,
        "isAutoCompactEnabled": True,
    }  # fmt: skip
