"""What a message says of windows, models and automatic compaction: signals of limits (R12)."""

from typing import NamedTuple

from contextgauge.records import Category, Json


class ModelWindow(NamedTuple):
    """One entry of `modelUsage`. Names as reported; `canonical` may be the model's other name."""

    name: str
    canonical: str | None
    window: int


class RuntimeWindows(NamedTuple):
    """The runtime reported windows by model name (R12)."""

    entries: tuple[ModelWindow, ...]


class OwnWindow(NamedTuple):
    """The runtime reported the window of the chain's model without naming it.

    `of_next`: that of the next turn's model, if one is named before the next reading (R12).
    """

    window: int
    of_next: bool = False


class ModelReport(NamedTuple):
    """The main chain's model, reported outside a response; `init` also brings its suffix (R12)."""

    model: str
    is_init: bool


class TurnModel(NamedTuple):
    """The chain's model, by Codex' `turn_context`; its window may have been reported before it."""

    model: str


class SubagentResult(NamedTuple):
    """What a subagent's result says in its parent's context.

    `model` is the name of one with a `[1m]`-like suffix: no chain's model is reported (R12).
    `agent_id` and `subagent_type` are both there or both None (R2).
    """

    model: str | None
    agent_id: str | None
    subagent_type: str | None


class AutoCompact(NamedTuple):
    """Auto-compact facts of the main chain; what is None was not reported and stays.

    `enforced` is None in a context-usage answer, which changes nothing of an enforced setting.
    """

    enabled: bool | None
    threshold: int | None
    effective_window: int | None
    source: str | None
    enforced: bool | None


class ContextUsage(NamedTuple):
    """A runtime's own account of its context (`get_context_usage`, `/context`)."""

    model: str | None
    total_tokens: int | None
    raw_max_tokens: int | None
    categories: tuple[Category, ...] | None
    message_breakdown: dict[str, Json] | None
