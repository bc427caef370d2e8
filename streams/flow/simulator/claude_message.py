"""What Claude's stream and transcripts have in common: the API's messages and their usage."""

from schemas.records import Json
from streams.flow.simulator.session import ModelResponse, SimulatedSession, SimulatedTokens

VERSION = "2.1.329"
CWD = "/srv/repo"


def usage_object(usage: SimulatedTokens, output: int) -> dict[str, Json]:
    """Return a usage object; `output` is a placeholder on all but a response's last message."""
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.creation,
        "cache_read_input_tokens": usage.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": 0,
            "ephemeral_1h_input_tokens": usage.creation,
        },
        "output_tokens": output,
        "service_tier": "standard",
        "inference_geo": "not_available",
    }


def _usage_of(response: ModelResponse, output: int) -> dict[str, Json]:
    """Return a response's usage; one of several calls has the usage of each."""
    usage = total = response.usage
    if response.is_compacted:
        # The sum leaves the compaction out that the response began with.
        calls = [
            ("compaction", SimulatedTokens(1_200, 0, usage.read // 2, 700)),
            ("message", usage),
        ]
    elif response.with_iterations:
        first = SimulatedTokens(usage.input, usage.creation // 2, usage.read, 40)
        calls, total = [("message", first), ("message", usage)], first.plus(usage)
    else:
        return usage_object(usage, output)
    iterations: list[Json] = [
        {"type": kind, **usage_object(call, call.output)} for kind, call in calls
    ]
    return {**usage_object(total, total.output), "iterations": iterations}


def message_object(
    response: ModelResponse, message_id: str, content: list[Json], output: int
) -> dict[str, Json]:
    """Return the API's message with some of its content; its input counts are always complete."""
    edits: Json = {"applied_edits": list(response.edits)}
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": response.chain.model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage_of(response, output),
        "context_management": edits if response.edits else None,
    }


class ClaudeSession(SimulatedSession):
    """Claude Code's sessions, however they are written down."""

    tool_use_id = ""
    """The last tool call's."""

    def content_blocks(self, response: ModelResponse, text: str, thinking: float) -> list[Json]:
        """Return a response's content blocks."""
        random = self.random
        blocks: list[Json] = [{"type": "text", "text": text}]
        if random.chance(thinking):
            blocks.insert(0, {"type": "thinking", "thinking": "", "signature": random.key("sig")})
        if response.tool:
            self.tool_use_id = random.key("toolu_")
            command: Json = {"command": random.text(random.size(120, 1.0, 8_000))}
            blocks.append(
                {"type": "tool_use", "id": self.tool_use_id, "name": "Bash", "input": command}
            )
        return blocks
