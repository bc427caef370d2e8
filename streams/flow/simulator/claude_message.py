"""What Claude's stream and transcripts have in common: the API's messages and their usage."""

from schemas.records import Json
from streams.flow.simulator.random_source import RandomSource
from streams.flow.simulator.session import ModelResponse, TokenCounts

VERSION = "2.1.329"
CWD = "/srv/repo"


def usage_object(usage: TokenCounts, output: int) -> dict[str, Json]:
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


def _iterations(calls: dict[str, TokenCounts], total: TokenCounts) -> dict[str, Json]:
    return {
        **usage_object(total, total.output),
        "iterations": [
            {"type": kind.rstrip("12"), **usage_object(call, call.output)}
            for kind, call in calls.items()
        ],
    }


def _tool_loop(usage: TokenCounts) -> dict[str, Json]:
    """Return the usage of a server-side tool loop: the top level is the sum of two calls."""
    first = TokenCounts(usage.input, usage.creation // 2, usage.read, 40)
    return _iterations({"message1": first, "message2": usage}, first.plus(usage))


def _server_compaction(usage: TokenCounts) -> dict[str, Json]:
    """Return the usage of a response that began with a compaction, which the sum leaves out."""
    compaction = TokenCounts(1_200, 0, usage.read // 2, 700)
    return _iterations({"compaction": compaction, "message": usage}, usage)


def content_blocks(
    random: RandomSource, response: ModelResponse, text: str, thinking: float
) -> tuple[list[Json], str]:
    """Return a response's content blocks, and the id of its tool use, "" if there is none."""
    blocks: list[Json] = [{"type": "text", "text": text}]
    tool_use_id = ""
    if random.chance(thinking):
        blocks.insert(0, {"type": "thinking", "thinking": "", "signature": random.key("sig")})
    if response.tool:
        tool_use_id = random.key("toolu_")
        command: Json = {"command": random.text(random.size(120, 1.0, 8_000))}
        blocks.append({"type": "tool_use", "id": tool_use_id, "name": "Bash", "input": command})
    return blocks, tool_use_id


def message_object(
    response: ModelResponse, message_id: str, content: list[Json], output: int
) -> dict[str, Json]:
    """Return the API's message with some of its content; its input counts are always complete."""
    usage = usage_object(response.usage, output)
    if response.is_compacted:
        usage = _server_compaction(response.usage)
    elif response.with_iterations:
        usage = _tool_loop(response.usage)
    edits: Json = {"applied_edits": list(response.edits)}
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": response.chain.model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
        "context_management": edits if response.edits else None,
    }
