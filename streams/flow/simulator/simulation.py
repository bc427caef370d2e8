"""Sessions running at the same time: their messages in the order of simulated time."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice

from streams.flow.simulator.claude_stream import ClaudeStream
from streams.flow.simulator.claude_transcript import ClaudeTranscript
from streams.flow.simulator.codex import Codex
from streams.flow.simulator.plans import SimulationOptions, plans, sample_plans
from streams.flow.simulator.published_responses import Gemini, OpenAIChat, OpenAIResponses
from streams.flow.simulator.session import (
    DialectName,
    SessionPlan,
    SimulatedMessage,
    SimulatedSession,
)

DIALECTS: dict[DialectName, Callable[[SessionPlan], SimulatedSession]] = {
    "claude-stream": ClaudeStream,
    "claude-transcript": ClaudeTranscript,
    "openai-chat": OpenAIChat,
    "openai-responses": OpenAIResponses,
    "gemini": Gemini,
    "codex": Codex,
}


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
    numbers = count()

    def run(
        plan: SessionPlan | None, number: int
    ) -> Iterator[tuple[tuple[int, int], SimulatedMessage]]:
        while plan is not None:
            at_ms = plan.start_ms
            for message in DIALECTS[plan.dialect](plan).run():
                at_ms = message.at_ms
                yield (at_ms, number), message
            plan, number = next(later, None), next(numbers)
            plan = plan and replace(plan, start_ms=max(plan.start_ms, at_ms))

    # Of messages at the same time, those of the session that began first come first.
    running = [run(plan, next(numbers)) for plan in first]
    for _, message in heapq.merge(*running, key=lambda item: item[0]):
        yield message
