"""The list of faults: what befalls a world, and what its documentation says is lost by it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.chaos.world import World

Act: TypeAlias = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault. `act` does it and heals it; from its return on recovery is measured."""

    name: str
    act: Act
    group: str
    needs_brokers: bool = False
    outcome: str = ""
    """What is expected instead of going on by itself, and where it is written."""
    lacks: Callable[[], str] | None = None
    """What this machine lacks for it, empty if nothing."""


FAULTS: Final[dict[str, Fault]] = {}


def fault(
    name: str,
    group: str,
    *,
    needs_brokers: bool = False,
    outcome: str = "",
    lacks: Callable[[], str] | None = None,
) -> Callable[[Act], Act]:
    """Add a function to the list."""

    def add(act: Act) -> Act:
        FAULTS[name] = Fault(name, act, group, needs_brokers, outcome, lacks)
        return act

    return add


def slug(name: str) -> str:
    """Return a fault's name as part of a topic's."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
