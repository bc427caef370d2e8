"""Messages that Claude's stream sends now and then, without the fields that all frames have."""

from collections.abc import Callable

from schemas.records import Json
from streams.flow.simulator.claude_message import CWD
from streams.flow.simulator.session import SimulatedChain

Frame = dict[str, Json]


def _system(subtype: str, **fields: Json) -> Callable[[SimulatedChain, int], Frame]:
    return lambda _chain, _window: {"type": "system", "subtype": subtype, **fields}


def _hook_input(event: str, **fields: Json) -> Callable[[SimulatedChain, int], Frame]:
    """Return a hook's input, which a hook may publish; it has no type."""
    return lambda _chain, _window: {"cwd": CWD, "hook_event_name": event, **fields}


def _context_frame(chain: SimulatedChain, window: int) -> Frame:
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


def _auto_compact_state(_chain: SimulatedChain, window: int) -> Frame:
    value: Json = {
        "effective_window": window,
        "threshold": window * 5 // 6,
        "enabled": True,
        "enforced": True,
        "source": "settings",
    }
    return {"type": "autocompact_state", "value": value}


NEUTRAL_FRAMES: dict[str, Callable[[SimulatedChain, int], Frame]] = {
    "api_retry": _system("api_retry", attempt=1, max_retries=10, retry_delay_ms=700),
    "thinking_tokens": _system("thinking_tokens", estimated_tokens=90),
    "background_tasks_changed": _system("background_tasks_changed", tasks=[]),
    "task_updated": _system("task_updated", task_id="t1", patch={"status": "completed"}),
    "task_notification": _system(
        "task_notification", task_id="t1", status="completed", usage={"total_tokens": 21_000}
    ),
    "hook_input_post_compact": _hook_input("PostCompact", trigger="auto"),
    "hook_input_session_start": _hook_input(
        "SessionStart", source="resume", context_tokens=90_000, seconds_since_last_response=300
    ),
}
"""Those without effect on any figure."""

RARE_FRAMES: dict[str, Callable[[SimulatedChain, int], Frame]] = {
    **NEUTRAL_FRAMES,
    "context_frame": _context_frame,
    "autocompact_state": _auto_compact_state,
}


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
