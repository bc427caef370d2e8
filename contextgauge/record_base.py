"""What every record's data has, of whatever kind."""

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from contextgauge.frozen import dataclass

MAIN_CHAIN: Final = "main"
"""Subject of the main conversation; a subagent's chain is named by its agent id (R2)."""

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
    """Any JSON value, as the standard parser gives it."""
else:
    # A validator of the recursive type stops at 255 levels; R5 allows 1 024. The parser has
    # seen to it already that what is here is JSON.
    Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What every record's data carries. Fields with a default are left out where they are null.

    `model` is the chain's model without a `[1m]`-like suffix. `task_id` is what the publisher
    set on the source message. `subagent_type` is the chain's, where a message reported it.
    `inherited` is true where the source message is a copy of another session's (R30): it shows what
    the context holds, and belongs in no total, average, chart or alert.
    """

    session_id: str
    chain: str
    model: str | None
    task_id: str | None
    subagent_type: str | None
    inherited: bool | None = None
