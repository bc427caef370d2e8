"""What the drivers share: how a step ends early, with the result to return; fields of answers."""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, Literal, TypeAlias

from streams.ports.control import DriverResult

Fields: TypeAlias = Mapping[str, Any]
"""A JSON object that a runtime sent: anything may be missing, or be something else."""

STOP_S: Final = 5.0
"""How long a runtime may take to confirm that it stopped, and a process of ours to exit."""
ANSWER_S: Final = 30.0
"""How long any other answer than the compaction's may take: a session may be loaded first."""
COMPACTION_S: Final = 300.0
"""How long a compaction may take, unless configured: a summary takes a minute or two."""


class NotCompactedError(Exception):
    """It did not come to a compaction, or its outcome is unknown. The result says which."""

    def __init__(
        self, outcome: Literal["done", "started", "retry", "refused"], reason: str
    ) -> None:
        super().__init__(reason)
        self.result = DriverResult(outcome, reason)


async def result_of(compacting: Awaitable[DriverResult], instructions: str | None) -> DriverResult:
    """Wait for the result, also where it did not come to a compaction.

    Of a runtime that accepts no instructions: it says so where they had no effect.
    """
    try:
        result = await compacting
    except NotCompactedError as ending:
        result = ending.result
    if instructions is None or result.outcome != "done":
        return result
    return result._replace(reason=f"{result.reason}; it accepts no instructions, so without them")


def fields(message: Fields, *path: str) -> Fields:
    """Return an object inside a message; an empty one where there is none."""
    for name in path:
        inner = message.get(name)
        if not isinstance(inner, Mapping):
            return {}
        message = inner
    return message


def text(message: Fields, name: str) -> str:
    """Return a text of a message; an empty one where there is none."""
    value = message.get(name)
    return value if isinstance(value, str) else ""
