"""The closed sets of words in records, which `contextgauge.records` offers with the records."""

import pkgutil
from os import path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

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

RELEASED_RUNTIMES: Final = ("claude-code", "codex", "qwen-code", "gemini", "openai", "other")
"""In the order in which schemas and pages list them."""


_NORMALISE: Final = path.join(path.dirname(__file__), "normalise")
ADAPTER_FOLDERS: Final = sorted(
    each.name for each in pkgutil.iter_modules([_NORMALISE]) if each.ispkg
)
"""One for each runtime, of the same name, but for these two."""

_WITHOUT_NAMES: Final = ("known", "providers")
"""What is only recognised is `other`; `openai` is an agent of one's own on that provider's SDK."""


def _runtimes() -> tuple[str, ...]:
    names = (each.replace("_", "-") for each in ADAPTER_FOLDERS if each not in _WITHOUT_NAMES)
    return tuple(dict.fromkeys((*RELEASED_RUNTIMES, *names)))


if TYPE_CHECKING:
    Runtime: TypeAlias = str
else:
    Runtime = Literal[_runtimes()]
"""What runs an agent; `contextgauge/normalise/runtimes.py` has by what each is recognised."""

ExhaustedReason: TypeAlias = Literal[
    "prompt_too_long",
    "blocking_limit",
    "rapid_refill_breaker",
    "model_context_window_exceeded",
    "hard_limit",
    "compaction_window",
]
