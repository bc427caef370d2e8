"""Claude's transcript: the JSON lines that Claude Code writes to disk.

It knows no start, no failure and no window: only what succeeded leaves a line.
"""

from schemas.records import Json
from streams.flow.simulator.claude_stream import iso, usage_object, with_iterations
from streams.flow.simulator.session import SimulatedChain, CompactionAttempt, EndReason, ModelResponse, SimulatedSession

_VERSION = "2.1.329"
_OWN_CALL = "acompact-"
"""A compaction's own call has a file of this name among the subagents'."""


class ClaudeTranscript:
    """Lines of the main chain go to the session's file, a subagent's to its own."""

    def __init__(self, session: SimulatedSession) -> None:
        self._session = session
        self._random = session.random
        self._plan = session.plan
        self._tool_use_id = ""

    def begin(self, chain: SimulatedChain) -> None:
        """Write the lines that a file begins with; they name no session."""
        del chain
        snapshot: Json = {"messageId": self._random.uuid(), "trackedFileBackups": {}}
        self._bare({"type": "file-history-snapshot", "snapshot": snapshot})
        self._bare({"type": "summary", "summary": self._random.text(60)})

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Write the user's line."""
        self._line("user", chain, {"message": {"role": "user", "content": text}})

    def respond(self, response: ModelResponse) -> None:
        """Write a response: one line per content block, the output counted on the last."""
        random, usage = self._random, response.usage
        message_id, request_id = random.key("msg_"), random.key("req_")
        blocks: list[Json] = [{"type": "text", "text": random.text(random.size(250, 1.0, 16_000))}]
        if random.chance(0.4):
            blocks.insert(0, {"type": "thinking", "thinking": "", "signature": random.key("sig")})
        if response.tool:
            self._tool_use_id = random.key("toolu_")
            command: Json = {"command": random.text(random.size(120, 1.0, 8_000))}
            blocks.append(
                {"type": "tool_use", "id": self._tool_use_id, "name": "Bash", "input": command}
            )
        for number, block in enumerate(blocks, 1):
            output = usage.output if number == len(blocks) else 1
            message: dict[str, Json] = {
                "model": response.chain.model,
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": with_iterations(usage)
                if response.with_iterations
                else usage_object(usage, output),
            }
            if response.edits:
                message["context_management"] = {"applied_edits": list(response.edits)}
            self._line("assistant", response.chain, {"message": message, "requestId": request_id})
        if random.chance(0.01):
            self._api_error(response.chain)

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Write the tool's answer, and the progress lines that ran before it."""
        for _ in range(self._random.integer(0, 9) if self._random.chance(self._plan.noise) else 0):
            self._progress(chain)
        content: Json = [{"type": "tool_result", "tool_use_id": self._tool_use_id, "content": text}]
        self._line(
            "user",
            chain,
            {"message": {"role": "user", "content": content}, "toolUseResult": {"type": "text"}},
        )

    def compact(self, chain: SimulatedChain, compaction: CompactionAttempt) -> bool:
        """Write what succeeded: the own call in its file, the boundary, the summary."""
        if compaction.outcome in {"failed", "blocked", "lost-end"}:
            return False
        self._session.now_ms += compaction.duration_ms
        self._own_call(chain, compaction)
        trigger = "manual" if compaction.is_manual else "auto"
        metadata: dict[str, Json] = {"trigger": trigger, "preTokens": compaction.pre_tokens}
        if compaction.outcome == "done":
            metadata |= {
                "postTokens": compaction.post_tokens,
                "durationMs": compaction.duration_ms,
            }
        last, chain.last_uuid = chain.last_uuid, None
        self._line(
            "system",
            chain,
            {
                "subtype": "compact_boundary",
                "content": "Conversation compacted",
                "logicalParentUuid": last,
                "isMeta": False,
                "level": "info",
                "compactMetadata": metadata,
            },
        )
        summary = self._random.text(self._random.size(9_000, 0.4, 24_000))
        self._line(
            "user",
            chain,
            {
                "message": {"role": "user", "content": summary},
                "isVisibleInTranscriptOnly": True,
                "isCompactSummary": True,
            },
        )
        return True

    def reset(self, chain: SimulatedChain) -> None:
        """Write the `/clear` command."""
        text = "<command-name>/clear</command-name>\n<command-args></command-args>"
        self._line("user", chain, {"message": {"role": "user", "content": text}})

    def noise(self, chain: SimulatedChain) -> None:
        """Write a line that means nothing, or a micro-compaction."""
        kind = self._random.choice(("flood", "snapshot", "queue", "micro", "stop"))
        if kind == "flood":
            for _ in range(self._random.integer(5, 60)):
                self._progress(chain)
        elif kind == "micro":
            self._micro_compaction(chain)
        elif kind == "stop":
            self._line("system", chain, {"subtype": "turn_duration", "durationMs": 4_000})
        elif kind == "queue":
            self._bare({"type": "queue-operation", "operation": "enqueue"})
        else:
            self._bare({"type": "file-history-snapshot", "snapshot": {}})

    def end_turn(self, chain: SimulatedChain, reason: EndReason) -> None:
        """Write nothing: a transcript has no line for it."""

    def _own_call(self, chain: SimulatedChain, compaction: CompactionAttempt) -> None:
        own = SimulatedChain(chain.model, 0, agent_id=_OWN_CALL + self._random.key("")[:6])
        text = self._random.text(600)
        self._line("user", own, {"message": {"role": "user", "content": text}})
        message: Json = {
            "model": own.model,
            "id": self._random.key("msg_"),
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": self._random.text(9_000)}],
            "usage": {"input_tokens": 2, "cache_read_input_tokens": compaction.pre_tokens},
        }
        self._line("assistant", own, {"message": message})

    def _micro_compaction(self, chain: SimulatedChain) -> None:
        saved = chain.cached_tokens // 5
        metadata: Json = {
            "trigger": "auto",
            "preTokens": chain.used_tokens,
            "tokensSaved": saved,
            "compactedToolIds": [self._tool_use_id],
        }
        chain.cached_tokens -= saved
        self._line(
            "system",
            chain,
            {"subtype": "microcompact_boundary", "microcompactMetadata": metadata},
        )

    def _api_error(self, chain: SimulatedChain) -> None:
        message: Json = {
            "model": "<synthetic>",
            "role": "assistant",
            "content": [{"type": "text", "text": "API Error: 529"}],
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        self._line("assistant", chain, {"message": message, "isApiErrorMessage": True})

    def _progress(self, chain: SimulatedChain) -> None:
        data: Json = {"type": "bash_progress", "output": self._random.text(90), "elapsed": 1}
        body: dict[str, Json] = {"data": data, "toolUseID": self._tool_use_id}
        self._line("progress", chain, body)

    def _bare(self, body: dict[str, Json]) -> None:
        self._session.emit(body)

    def _line(self, kind: str, chain: SimulatedChain, more: dict[str, Json]) -> None:
        uuid = self._random.uuid()
        body: dict[str, Json] = {
            "parentUuid": chain.last_uuid,
            "isSidechain": chain.agent_id is not None,
            "userType": "external",
            "cwd": "/srv/repo",
            "sessionId": self._plan.session_id,
            "version": _VERSION,
            "gitBranch": "main",
            "type": kind,
            **more,
            "uuid": uuid,
            "timestamp": iso(self._session.now_ms),
        }
        if chain.agent_id is not None:
            body["agentId"] = chain.agent_id
        chain.last_uuid = uuid
        self._session.emit(body, chain.agent_id)
