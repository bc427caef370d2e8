"""Which lines of a rollout are copies of another thread's history (R30).

A Codex fork, or a subagent that is started with its parent's context, begins with its origin's
lines, written again with the time of the copying. They show how large the context is, but are not
this thread's own doing. What shows where the copy ends, best first:

1. the head, where it has the ordinal of the thread's own first line;
2. the reader of the file, who has the origin's rollout too (`Normal.inherited`);
3. the ids of turns, of which version 7 UUIDs tell the time: a turn that began before the thread
   was created is a copy, one that began after it is its own;
4. a line's own time before the thread was created;
5. the pace: all copies are written at once, and the first answer of a model takes longer.

A copy begins where the origin's head stands in the rollout, or with a line that 3 or 4 shows.
"""

from enum import Enum, auto
from typing import Final

from contextgauge.normalise.signals import Normal, Thread
from streams.core.derivation.state import Chain, ThreadState

PAUSE_MS: Final = 1_000
"""A pause that no copying makes: hundreds of lines are copied within some milliseconds."""


class Head(Enum):
    """What a rollout's head tells: its thread, again, or going on from earlier; or its origin."""

    OWN = auto()
    ROLLED_BACK = auto()
    ORIGIN = auto()


def begin(chain: Chain, thread: Thread, own_ms: int | None) -> Head:
    """Take a rollout's head: the first names the thread, another one its origin.

    One of the same thread in a rollout with another base goes on from there: what came after it
    is in the context no more.
    """
    known = chain.thread
    if known is None:
        chain.thread = ThreadState(
            thread.id, thread.created_ms, own_from=thread.own_from, base=thread.base
        )
        return Head.OWN
    if thread.id != known.id:
        chain.thread = known._replace(copying=True, copied_ms=own_ms)
        return Head.ORIGIN
    if thread.base in (None, known.base):
        return Head.OWN
    chain.thread = known._replace(own_from=thread.own_from, base=thread.base)
    return Head.ROLLED_BACK


def is_inherited(chain: Chain, normal: Normal) -> bool:
    """Return whether a message is a copy of another session's, and note what shows it."""
    thread = chain.thread
    if thread is None:
        return normal.inherited is True
    copying, has_turns = _decide(thread, normal)
    copied_ms = thread.copied_ms if normal.own_ms is None or not copying else normal.own_ms
    after = thread._replace(copying=copying, copied_ms=copied_ms, has_turns=has_turns)
    if after != thread:
        chain.thread = after
    return copying


def _decide(thread: ThreadState, normal: Normal) -> tuple[bool, bool]:
    """Return whether a line is a copy, and whether turns tell their times."""
    if thread.own_from is not None and normal.ordinal is not None:
        return normal.ordinal < thread.own_from, thread.has_turns
    created_ms = thread.created_ms
    if normal.turn_ms is not None and created_ms is not None:
        return normal.turn_ms < created_ms, True
    if normal.inherited is not None:
        # Its own turn has begun: the origin may have the same line.
        return normal.inherited and (thread.copying or not thread.has_turns), thread.has_turns
    if normal.own_ms is None:
        return thread.copying, thread.has_turns
    if created_ms is not None and normal.own_ms < created_ms:
        return True, thread.has_turns
    if not thread.copying or thread.has_turns or thread.copied_ms is None:
        return thread.copying, thread.has_turns
    return normal.own_ms - thread.copied_ms < PAUSE_MS, thread.has_turns
