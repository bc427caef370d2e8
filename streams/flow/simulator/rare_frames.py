"""Messages that Claude's stream sends now and then, without the fields that all frames have."""

from schemas.records import Json
from streams.flow.simulator.claude_message import CWD
from streams.flow.simulator.session import SimulatedChain

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
