"""Claude's transcript: the JSON lines that Claude Code writes to disk.

It has no start, no failure and no window: only what succeeded leaves a line.
"""

from schemas.records import Json
from streams.flow.simulator.claude_message import (
    CWD,
    VERSION,
    ClaudeSession,
    message_object,
    usage_object,
)
from streams.flow.simulator.session import (
    CHARACTERS_PER_TOKEN,
    SUBAGENT_TYPE,
    CompactionAttempt,
    ModelResponse,
    SimulatedChain,
    SimulatedTokens,
    iso,
)

_PROJECT = "-srv-repo"
"""Claude Code names a project's folder after its working directory."""
_EARLY_VERSION = "2.0.13"
_OWN_CALL = "acompact-"
"""A compaction's own call has a file with this name among the subagents' files."""
_STORED_MS = 240
"""The boundary is stored so long after the summary's end."""
_COMMAND_OUTPUT = {"compact": "Compacted ", "clear": ""}
_MOST_DELAY_MS = 3_000
"""Progress is written late, with the time at which it happened: timestamps go back."""


class ClaudeTranscript(ClaudeSession):
    """Lines of the main chain go to the session's file, a subagent's to its own."""

    def file_of(self, agent_id: str | None) -> str:
        """Return the session's file, or a subagent's."""
        folder = f"{_PROJECT}/{self.plan.session_id}"
        return (
            f"{folder}.jsonl" if agent_id is None else f"{folder}/subagents/agent-{agent_id}.jsonl"
        )

    def begin(self) -> None:
        """Write the lines at the top of a file; they do not contain the session."""
        self._snapshot()
        summary = self.random.text(60)
        self.emit({"type": "summary", "summary": summary, "leafUuid": self.random.uuid()})

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Write the user's line."""
        self._user(chain, text, thinkingMetadata={"level": "high", "disabled": False})

    def respond(self, response: ModelResponse) -> None:
        """Write a response: one line per content block, the output count on the last."""
        random, output = self.random, response.usage.output
        message_id, request_id = random.key("msg_"), random.key("req_")
        text = random.text(random.size(250, 1.0, 16_000))
        blocks = self.content_blocks(response, text, thinking=0.4)
        for block in blocks:
            counted = output if block is blocks[-1] else 1
            message = message_object(response, message_id, [block], counted)
            self._line("assistant", response.chain, message=message, requestId=request_id)
        if random.chance(0.01):
            self._api_error(response.chain)

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Write the tool's result, sometimes after progress lines."""
        if self.random.chance(self.plan.noise):
            self._progress(chain, self.random.integer(0, 9))
        self._user(chain, self._result_block(text), toolUseResult={"type": "text"})

    def subagent_result(self, subagent: SimulatedChain) -> None:
        """Write the result of the tool that ran the subagent, with the subagent's totals."""
        total = SimulatedTokens(3, subagent.new_tokens, subagent.cached_tokens, 200)
        totals: dict[str, Json] = {
            "status": "completed",
            "totalTokens": total.used + total.output,
            "totalToolUseCount": 2,
            "usage": usage_object(total, total.output),
        }
        if not self.plan.is_early:
            totals |= {"agentId": subagent.agent_id, "agentType": SUBAGENT_TYPE}
        self._user(self.main, self._result_block(self.random.text(500)), toolUseResult=totals)

    def compact(self, chain: SimulatedChain, attempt: CompactionAttempt) -> bool:
        """Write what succeeded: the own call in its file, the boundary, the summary."""
        if attempt.outcome in {"failed", "blocked", "lost-end"}:
            return False
        asked_ms = self.now_ms
        if self.plan.is_early:
            self.now_ms += attempt.duration_ms
        else:
            self._own_call(chain, attempt)
        metadata: dict[str, Json] = {
            "trigger": "manual" if attempt.is_manual else "auto",
            "preTokens": attempt.pre_tokens,
        }
        if attempt.outcome == "done" and not self.plan.is_early:
            metadata |= {"postTokens": attempt.post_tokens, "durationMs": attempt.duration_ms}
        last, chain.last_uuid = chain.last_uuid, None
        self._line(
            "system",
            chain,
            subtype="compact_boundary",
            content="Conversation compacted",
            logicalParentUuid=last,
            isMeta=False,
            level="info",
            compactMetadata=metadata,
        )
        summary = self.random.text(self.random.size(9_000, 0.4, 24_000))
        self._user(chain, summary, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        if attempt.is_manual:
            self._command(chain, "compact", asked_ms)
        return True

    def reset(self) -> None:
        """Write the `/clear` command."""
        self._command(self.main, "clear", self.now_ms)

    def noise(self, chain: SimulatedChain) -> None:
        """Write a line without effect on the context, or a micro-compaction."""
        kind = self.random.choice(("flood", "snapshot", "queue", "micro", "stop", "retry"))
        if kind == "flood":
            self._progress(chain, self.random.integer(5, 60))
        elif kind == "micro":
            self._micro_compaction(chain)
        elif kind == "stop":
            self._line("system", chain, subtype="stop_hook_summary", hookCount=1, hookErrors=[])
            self._line("system", chain, subtype="turn_duration", durationMs=4_000)
        elif kind == "retry":
            self._line(
                "system", chain, subtype="api_error", retryAttempt=1, retryInMs=500, maxRetries=10
            )
        elif kind == "queue":
            self.emit({
                "type": "queue-operation",
                "operation": "enqueue",
                "timestamp": iso(self.now_ms),
                "content": self.random.text(80),
                "sessionId": self.plan.session_id,
            })  # fmt: skip
        else:
            self._snapshot()

    def _command(self, chain: SimulatedChain, name: str, asked_ms: int) -> None:
        """Write what a typed command leaves: a note to the model, the command, its output."""
        self._user(chain, f"<note>{self.random.text(60)}</note>", at_ms=asked_ms, isMeta=True)
        command = f"<command-name>/{name}</command-name>\n<command-args></command-args>"
        self._user(chain, command, at_ms=asked_ms)
        output = _COMMAND_OUTPUT[name]
        self._user(chain, f"<local-command-stdout>{output}</local-command-stdout>")

    def _own_call(self, chain: SimulatedChain, attempt: CompactionAttempt) -> None:
        """Write the call that takes the attempt's time: its prompt, and the summary."""
        own = SimulatedChain(chain.model, 0, agent_id=_OWN_CALL + self.random.key("")[:6])
        self._user(own, self.random.text(600))
        message: Json = {
            "model": own.model,
            "id": self.random.key("msg_"),
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": self.random.text(9_000)}],
            "stop_reason": "end_turn",
            "usage": {
                "input_tokens": 2,
                "cache_read_input_tokens": attempt.pre_tokens,
                "output_tokens": 9_000 // CHARACTERS_PER_TOKEN,
            },
        }
        stored_ms = min(_STORED_MS, attempt.duration_ms)
        self.now_ms += attempt.duration_ms - stored_ms
        self._line("assistant", own, message=message)
        self.now_ms += stored_ms

    def _micro_compaction(self, chain: SimulatedChain) -> None:
        saved = chain.cached_tokens // 5
        metadata: Json = {
            "trigger": "auto",
            "preTokens": chain.used_tokens,
            "tokensSaved": saved,
            "compactedToolIds": [self.tool_use_id],
        }
        chain.cached_tokens -= saved
        self._line("system", chain, subtype="microcompact_boundary", microcompactMetadata=metadata)

    def _api_error(self, chain: SimulatedChain) -> None:
        message: Json = {
            "model": "<synthetic>",
            "role": "assistant",
            "content": [{"type": "text", "text": "API Error: 529"}],
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        self._line("assistant", chain, message=message, isApiErrorMessage=True)

    def _progress(self, chain: SimulatedChain, lines: int) -> None:
        for _ in range(lines):
            data: Json = {"type": "bash_progress", "output": self.random.text(90), "elapsed": 1}
            at_ms = self.now_ms - self.random.integer(0, _MOST_DELAY_MS)
            tool_use = self.tool_use_id
            self._line(
                "progress", chain, at_ms, data=data, toolUseID=tool_use, parentToolUseID=tool_use
            )

    def _result_block(self, text: str) -> Json:
        return [{"type": "tool_result", "tool_use_id": self.tool_use_id, "content": text}]

    def _snapshot(self) -> None:
        message_id, timestamp = self.random.uuid(), iso(self.now_ms)
        snapshot: Json = {
            "messageId": message_id, "trackedFileBackups": {}, "timestamp": timestamp
        }  # fmt: skip
        self.emit({
            "type": "file-history-snapshot",
            "messageId": message_id,
            "snapshot": snapshot,
            "isSnapshotUpdate": False,
        })  # fmt: skip

    def _user(
        self, chain: SimulatedChain, content: Json, at_ms: int | None = None, **fields: Json
    ) -> None:
        self._line("user", chain, at_ms, message={"role": "user", "content": content}, **fields)

    def _line(
        self, kind: str, chain: SimulatedChain, at_ms: int | None = None, **fields: Json
    ) -> None:
        agent_id = None if self.plan.is_early else chain.agent_id
        uuid = self.random.uuid()
        body: dict[str, Json] = {
            "parentUuid": chain.last_uuid,
            "isSidechain": chain.agent_id is not None,
            "userType": "external",
            "cwd": CWD,
            "sessionId": self.plan.session_id,
            "version": _EARLY_VERSION if self.plan.is_early else VERSION,
            "gitBranch": "main",
            "type": kind,
            **fields,
            "uuid": uuid,
            "timestamp": iso(self.now_ms if at_ms is None else at_ms),
        }
        if agent_id is not None:
            body["agentId"] = agent_id
        chain.last_uuid = uuid
        self.emit(body, agent_id)
