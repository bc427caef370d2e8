"""All sessions together: their messages as bytes, in the order of simulated time."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from streams import codec
from streams.flow.simulator.cast import Casting, plans, sample_plans
from streams.flow.simulator.scene import Emitted, Plan
from streams.flow.simulator.story import tell

_PROJECT = "-srv-repo"
"""Claude Code names a project's folder by its working directory."""


class Simulated(NamedTuple):
    """One message. `value` is its line without the line end.

    `file` is its place in a folder laid out like Claude Code's projects, or Codex's sessions.
    """

    at_ms: int
    session_id: str
    file: str
    value: bytes
    is_named: bool

    def named(self) -> bytes:
        """Return the line with its session in it, for where neither file nor key tells it."""
        if self.is_named:
            return self.value
        return self.value[:-1] + b',"session_id":' + codec.dumps(self.session_id) + b"}"


def simulate(casting: Casting, messages: int | None = None) -> Iterator[Simulated]:
    """Yield the messages of `casting.sessions` sessions, or `messages` of them in all.

    With a number of messages, a session that is over is followed by another, so that as many as
    asked for are always at work.
    """
    endless = plans(casting)
    first = list(islice(endless, casting.sessions))
    if messages is None:
        return interleave(first)
    return islice(_merge(first, endless), messages)


def sample_sessions(casting: Casting) -> Iterator[Simulated]:
    """Yield the sample: a dozen short sessions that show every kind of thing there is.

    Of the casting, only the seed, the start and the providers count.
    """
    return interleave(sample_plans(casting))


def interleave(sessions: Sequence[Plan]) -> Iterator[Simulated]:
    """Yield the messages of these sessions in the order of simulated time, each to its end."""
    return _merge(sessions, iter(()))


def _merge(first: Iterable[Plan], later: Iterator[Plan]) -> Iterator[Simulated]:
    """Merge running sessions by time; one that ends hands over to the next of `later`."""
    running: list[tuple[int, int, Plan, Emitted, Iterator[Emitted]]] = []
    number = 0

    def run(plan: Plan) -> None:
        nonlocal number
        messages = tell(plan)
        number += 1
        opening = next(messages, None)
        if opening is not None:
            heapq.heappush(running, (opening.at_ms, number, plan, opening, messages))

    for plan in first:
        run(plan)
    while running:
        at_ms, order, plan, message, messages = running[0]
        yield _simulated(plan, message)
        following = next(messages, None)
        if following is not None:
            heapq.heapreplace(running, (following.at_ms, order, plan, following, messages))
            continue
        heapq.heappop(running)
        successor = next(later, None)
        if successor is not None:
            run(replace(successor, start_ms=max(successor.start_ms, at_ms)))


def _simulated(plan: Plan, message: Emitted) -> Simulated:
    return Simulated(
        message.at_ms,
        plan.session_id,
        _file(plan, message.agent_id),
        codec.dumps(message.body),
        message.is_named,
    )


def _file(plan: Plan, agent_id: str | None) -> str:
    if plan.spelling == "codex":
        return f"codex/rollout-{plan.session_id}.jsonl"
    if plan.spelling != "claude-transcript":
        return f"streams/{plan.session_id}.jsonl"
    if agent_id is None:
        return f"{_PROJECT}/{plan.session_id}.jsonl"
    return f"{_PROJECT}/{plan.session_id}/subagents/agent-{agent_id}.jsonl"
