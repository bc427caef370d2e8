"""Sessions running at the same time: their messages as bytes, in the order of simulated time."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from streams import codec
from streams.flow.simulator.plans import SimulationOptions, plans, sample_plans
from streams.flow.simulator.session import EmittedMessage, SessionPlan
from streams.flow.simulator.session_script import session_messages

_PROJECT = "-srv-repo"
"""Claude Code names a project's folder after its working directory."""


class SimulatedMessage(NamedTuple):
    """One message. `value` is its line without the line end.

    `file` is its place in a folder laid out like Claude Code's projects, or Codex's sessions.
    """

    at_ms: int
    session_id: str
    file: str
    value: bytes
    is_named: bool

    def named(self) -> bytes:
        """Return the line with its session in it, for where neither file nor key contains it."""
        if self.is_named:
            return self.value
        return self.value[:-1] + b',"session_id":' + codec.dumps(self.session_id) + b"}"


def simulate(options: SimulationOptions, messages: int | None = None) -> Iterator[SimulatedMessage]:
    """Yield the messages of `options.sessions` sessions, or `messages` of them in all.

    With a number of messages, each session that ends is followed by another, so that
    `options.sessions` are always running.
    """
    endless = plans(options)
    first = list(islice(endless, options.sessions))
    if messages is None:
        return interleave(first)
    return islice(_merge(first, endless), messages)


def sample_sessions(options: SimulationOptions) -> Iterator[SimulatedMessage]:
    """Yield the sample: about a dozen short sessions that show every kind of message and outcome.

    Of the options, only the seed, the start and the providers apply.
    """
    return interleave(sample_plans(options))


def interleave(sessions: Sequence[SessionPlan]) -> Iterator[SimulatedMessage]:
    """Yield the messages of these sessions in the order of simulated time, each to its end."""
    return _merge(sessions, iter(()))


def _merge(
    first: Iterable[SessionPlan], later: Iterator[SessionPlan]
) -> Iterator[SimulatedMessage]:
    """Merge running sessions by time; the next of `later` follows each that ends."""
    running: list[tuple[int, int, SessionPlan, EmittedMessage, Iterator[EmittedMessage]]] = []
    number = 0

    def run(plan: SessionPlan) -> None:
        nonlocal number
        messages = session_messages(plan)
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


def _simulated(plan: SessionPlan, message: EmittedMessage) -> SimulatedMessage:
    return SimulatedMessage(
        message.at_ms,
        plan.session_id,
        _file(plan, message.agent_id),
        codec.dumps(message.body),
        message.is_named,
    )


def _file(plan: SessionPlan, agent_id: str | None) -> str:
    if plan.dialect == "codex":
        return f"codex/rollout-{plan.session_id}.jsonl"
    if plan.dialect != "claude-transcript":
        return f"streams/{plan.session_id}.jsonl"
    if agent_id is None:
        return f"{_PROJECT}/{plan.session_id}.jsonl"
    return f"{_PROJECT}/{plan.session_id}/subagents/agent-{agent_id}.jsonl"
