"""Claude's transcript: the JSON lines that Claude Code writes to disk.

It has no start, no failure and no window: only what succeeded leaves a line.
"""

from collections.abc import Iterable

from schemas.records import Json
from streams.flow.simulator.claude_message import (
    CWD,
    VERSION,
    content_blocks,
    message_object,
    usage_object,
)
from streams.flow.simulator.session import (
    CompactionAttempt,
    Dialect,
    ModelResponse,
    SimulatedChain,
    SimulatedSession,
    TokenCounts,
    iso,
)

_EARLY_VERSION = "2.0.13"
_OWN_CALL = "acompact-"
"""A compaction's own call has a file with this name among the subagents' files."""
_COMMAND_OUTPUT = {"compact": "Compacted ", "clear": ""}
_MOST_DELAY_MS = 3_000
"""Progress is written late, with the time at which it happened: timestamps go back."""


class ClaudeTranscript(Dialect):
    """Lines of the main chain go to the session's file, a subagent's to its own."""

    def __init__(self, session: SimulatedSession) -> None:
        self._session = session
        self._random = session.random
        self._plan = session.plan
        self._tool_use_id = ""

    def begin(self, chain: SimulatedChain) -> None:
        """Write the lines at the top of a file; they do not contain the session."""
        del chain
        self._snapshot()
        summary: Json = self._random.text(60)
        self._bare({"type": "summary", "summary": summary, "leafUuid": self._random.uuid()})

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Write the user's line."""
        self._user(chain, text, thinkingMetadata={"level": "high", "disabled": False})

    def respond(self, response: ModelResponse) -> None:
        """Write a response: one line per content block, the output count on the last."""
        random, output = self._random, response.usage.output
        message_id, request_id = random.key("msg_"), random.key("req_")
        text = random.text(random.size(250, 1.0, 16_000))
        blocks, tool_use_id = content_blocks(random, response, text, thinking=0.4)
        self._tool_use_id = tool_use_id or self._tool_use_id
        for block in blocks:
            message = message_object(
                response, message_id, [block], output if block is blocks[-1] else 1
            )
            self._line("assistant", response.chain, message=message, requestId=request_id)
        if random.chance(0.01):
            self._api_error(response.chain)

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Write the tool's result, sometimes after progress lines."""
        if self._random.chance(self._plan.noise):
            self._progress(chain, self._random.integer(0, 9))
        self._user(chain, self._result_block(text), toolUseResult={"type": "text"})

    def subagent_result(self, chain: SimulatedChain, subagent: SimulatedChain) -> None:
        """Write the result of the tool that ran the subagent, with the subagent's totals."""
        total = TokenCounts(3, subagent.new_tokens, subagent.cached_tokens, 200)
        totals: Json = {
            "status": "completed",
            "totalTokens": total.used + total.output,
            "totalToolUseCount": 2,
            "usage": usage_object(total, total.output),
        }
        self._user(chain, self._result_block(self._random.text(500)), toolUseResult=totals)

    def compact(self, chain: SimulatedChain, attempt: CompactionAttempt) -> bool:
        """Write what succeeded: the own call in its file, the boundary, the summary."""
        if attempt.outcome in {"failed", "blocked", "lost-end"}:
            return False
        asked_ms = self._session.now_ms
        self._session.now_ms += attempt.duration_ms
        if not self._plan.is_early:
            self._own_call(chain, attempt)
        metadata: dict[str, Json] = {
            "trigger": "manual" if attempt.is_manual else "auto",
            "preTokens": attempt.pre_tokens,
        }
        if attempt.outcome == "done" and not self._plan.is_early:
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
        summary = self._random.text(self._random.size(9_000, 0.4, 24_000))
        self._user(chain, summary, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        if attempt.is_manual:
            self._command(chain, "compact", asked_ms)
        return True

    def reset(self, chain: SimulatedChain) -> None:
        """Write the `/clear` command."""
        self._command(chain, "clear", self._session.now_ms)

    def noise(self, chain: SimulatedChain) -> None:
        """Write a line without effect on the context, or a micro-compaction."""
        kind = self._random.choice(("flood", "snapshot", "queue", "micro", "stop", "retry"))
        if kind == "flood":
            self._progress(chain, self._random.integer(5, 60))
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
            self._bare({
                "type": "queue-operation",
                "operation": "enqueue",
                "timestamp": iso(self._session.now_ms),
                "content": self._random.text(80),
                "sessionId": self._plan.session_id,
            })  # fmt: skip
        else:
            self._snapshot()

    def _command(self, chain: SimulatedChain, name: str, asked_ms: int) -> None:
        """Write what a typed command leaves: a note to the model, the command, its output."""
        self._user(chain, f"<note>{self._random.text(60)}</note>", at_ms=asked_ms, isMeta=True)
        command = f"<command-name>/{name}</command-name>\n<command-args></command-args>"
        self._user(chain, command, at_ms=asked_ms)
        output = _COMMAND_OUTPUT[name]
        self._user(chain, f"<local-command-stdout>{output}</local-command-stdout>")

    def _own_call(self, chain: SimulatedChain, attempt: CompactionAttempt) -> None:
        own = SimulatedChain(chain.model, 0, agent_id=_OWN_CALL + self._random.key("")[:6])
        self._user(own, self._random.text(600))
        self._line(
            "assistant",
            own,
            message={
                "model": own.model,
                "id": self._random.key("msg_"),
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": self._random.text(9_000)}],
                "usage": {"input_tokens": 2, "cache_read_input_tokens": attempt.pre_tokens},
            },
        )

    def _micro_compaction(self, chain: SimulatedChain) -> None:
        saved = chain.cached_tokens // 5
        metadata: Json = {
            "trigger": "auto",
            "preTokens": chain.used_tokens,
            "tokensSaved": saved,
            "compactedToolIds": [self._tool_use_id],
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
            data: Json = {"type": "bash_progress", "output": self._random.text(90), "elapsed": 1}
            at_ms = self._session.now_ms - self._random.integer(0, _MOST_DELAY_MS)
            tool_use = self._tool_use_id
            self._line(
                "progress", chain, at_ms, data=data, toolUseID=tool_use, parentToolUseID=tool_use
            )

    def _result_block(self, text: str) -> list[Json]:
        return [{"type": "tool_result", "tool_use_id": self._tool_use_id, "content": text}]

    def _snapshot(self) -> None:
        message_id = self._random.uuid()
        timestamp = iso(self._session.now_ms)
        snapshot: Json = {
            "messageId": message_id, "trackedFileBackups": {}, "timestamp": timestamp
        }  # fmt: skip
        self._bare({
            "type": "file-history-snapshot",
            "messageId": message_id,
            "snapshot": snapshot,
            "isSnapshotUpdate": False,
        })  # fmt: skip

    def _bare(self, body: dict[str, Json]) -> None:
        """Write a line without a uuid, which is part of no chain."""
        self._session.emit(body)

    def _user(
        self,
        chain: SimulatedChain,
        content: str | Iterable[Json],
        at_ms: int | None = None,
        **fields: Json,
    ) -> None:
        text: Json = content if isinstance(content, str) else list(content)
        self._line("user", chain, at_ms, message={"role": "user", "content": text}, **fields)

    def _line(
        self, kind: str, chain: SimulatedChain, at_ms: int | None = None, **fields: Json
    ) -> None:
        agent_id = None if self._plan.is_early else chain.agent_id
        uuid = self._random.uuid()
        body: dict[str, Json] = {
            "parentUuid": chain.last_uuid,
            "isSidechain": chain.agent_id is not None,
            "userType": "external",
            "cwd": CWD,
            "sessionId": self._plan.session_id,
            "version": _EARLY_VERSION if self._plan.is_early else VERSION,
            "gitBranch": "main",
            "type": kind,
            **fields,
            "uuid": uuid,
            "timestamp": iso(self._session.now_ms if at_ms is None else at_ms),
        }
        if agent_id is not None:
            body["agentId"] = agent_id
        chain.last_uuid = uuid
        self._session.emit(body, agent_id)
