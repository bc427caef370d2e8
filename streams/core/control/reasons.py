"""The words for why a compaction was requested, or was not: a closed list.

docs/CONTROL.md has the same list; a test compares the two.
"""

from typing import Final, Literal, TypeAlias, get_args

FiredReason: TypeAlias = Literal["above_threshold", "model_change", "hard_limit"]
IdleReason: TypeAlias = Literal[
    "default_window",
    "unknown_window",
    "record_too_old",
    "no_driver",
    "command_open",
    "pause_after_failure",
    "awaiting_effect",
    "no_progress",
]
EffectReason: TypeAlias = Literal["no_effect"]
NO_DRIVER: Final[IdleReason] = "no_driver"
NO_EFFECT: Final[EffectReason] = "no_effect"
DecisionReason: TypeAlias = FiredReason | IdleReason | EffectReason

MEANINGS: Final[dict[DecisionReason, str]] = {
    "above_threshold": "The size reached compact_at: a compaction was requested.",
    "model_change": (
        "The model or its window changed, and the size is above the new compact_at: "
        "a compaction was requested."
    ),
    "hard_limit": ("The size reached hard_at: a compaction without a model was requested."),
    "default_window": (
        "The model is unknown, and nothing is compacted because of an assumed window. "
        "Set the window with CONTEXTGAUGE_WINDOWS."
    ),
    "unknown_window": "The window is unknown: set it with CONTEXTGAUGE_WINDOWS.",
    "record_too_old": (
        "The reading, or its arrival in Kafka, was older than max_age: records that were published "
        "or read late compact no session."
    ),
    "no_driver": (
        "The session's runtime compacts itself, and would not notice a compaction by the service: "
        "name its driver, or have its agent request its context (GET /v1/sessions/{id}/context)."
    ),
    "command_open": "A compaction of this session was requested already and is not finished.",
    "pause_after_failure": (
        "The last compaction did not succeed, and the pause after it is not over: a minute, "
        "doubled with each failure in a row, up to ten."
    ),
    "awaiting_effect": (
        "A compaction has just finished, and its effect is not known yet; "
        "or the reading is from before it."
    ),
    "no_progress": (
        "Two compactions in a row left the session above compact_at: nothing more is requested "
        "until it was below, its thresholds or window change, or it is above hard_at and a tenth "
        "of the window was added."
    ),
    "no_effect": (
        "The next answer reported the size before the compaction, which is undone: the agent does "
        "not request its context (GET /v1/sessions/{id}/context)."
    ),
}

REASONS: Final[tuple[DecisionReason, ...]] = (
    *get_args(FiredReason),
    *get_args(IdleReason),
    *get_args(EffectReason),
)
