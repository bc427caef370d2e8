"""Events of one way that each answer for one event of the other (R34).

They are known by names that several may share, such as a minute and counts, and are numbered by
their name among the known causes: an event that has answered is noted, and answers no other.
"""

from collections.abc import Iterable
from typing import Final

from streams.core.derivation.known_causes import KnownCauses, add, cause_hash, is_known

MOST: Final = 64
"""Events of one name that are numbered, which bounds a look-up. A minute has no more of a session
that are equal to the token; more of them are not remembered."""


def put(known: KnownCauses, name: str) -> KnownCauses:
    """Return the causes with one more event of a name."""
    for number in range(MOST):
        event = _hash("event", name, number)
        if not is_known(known, event):
            return add(known, event)
    return known


def take(known: KnownCauses, names: Iterable[str]) -> KnownCauses | None:
    """Return the causes after an event of these names has answered; the first name comes first.

    None where there is none that has not.
    """
    for name in names:
        for number in range(MOST):
            if not is_known(known, _hash("event", name, number)):
                break
            answered = _hash("answered", name, number)
            if not is_known(known, answered):
                return add(known, answered)
    return None


def _hash(kind: str, name: str, number: int) -> bytes:
    # A space: no message's own cause begins so.
    return cause_hash(f" {kind} {name} {number}")
