"""The closed sets of words in records, which `contextgauge.records` offers with the records."""

from typing import Literal, TypeAlias

WindowSource: TypeAlias = Literal[
    "configured", "runtime", "catalog", "default", "exceeded", "unknown"
]
"""Where a window is known from, best first; `exceeded`: the assumed one was proven wrong.

`unknown`: nothing is known of it, and none is assumed for that runtime."""

Trigger: TypeAlias = Literal["manual", "auto", "idle"]
"""`idle`: the runtime compacted a large session in an idle moment."""
TriggerReason: TypeAlias = Literal["manual", "threshold_exceeded"]
TokenSource: TypeAlias = Literal["reported", "last_reading"]
DurationSource: TypeAlias = Literal["reported", "paired", "derived", "precomputed"]
"""`derived`: from the prompt of the compaction's own call to the boundary. `precomputed`: reported,
but of a summary made in the background, without a wait: outside all duration statistics."""

Outcome: TypeAlias = Literal["failed", "blocked", "unknown"]
Runtime: TypeAlias = Literal["claude-code", "codex", "qwen-code", "gemini", "openai", "other"]
"""What runs an agent; `contextgauge/normalise/runtimes.py` has by what each is recognised."""

ExhaustedReason: TypeAlias = Literal[
    "prompt_too_long",
    "blocking_limit",
    "rapid_refill_breaker",
    "model_context_window_exceeded",
    "hard_limit",
    "compaction_window",
]
