"""Sessions in the shapes of real captures, made by the simulator: all values are invented.

`Recording` writes a session step by step, for tests that state its figures. The functions return
whole sessions, one for each capture. The real captures are on some machines only, in `../shared`:
a test that reads them takes the fixture `shared`, and is marked `shared`.
"""

from collections import defaultdict
from typing import Any, Self

from schemas.records import Json
from streams import codec
from streams.flow.simulator import DialectName, SessionPlan, interleave
from streams.flow.simulator.session import (
    AttemptOutcome,
    CompactionAttempt,
    EndReason,
    ModelResponse,
    SimulatedChain,
    SimulatedTokens,
)
from streams.flow.simulator.simulation import DIALECTS

SESSION = "5b1f0c2e-0000-4000-8000-00000000000c"
MODEL = "claude-sonnet-5"
START_MS = 1_793_534_400_000
"""Noon of the first of November 2026."""


def plan(dialect: DialectName, **fields: Any) -> SessionPlan:
    """Return a plan of one session, by default with a window of 200 000 tokens."""
    defaults: dict[str, Any] = {
        "seed": "capture", "session_id": SESSION, "start_ms": START_MS, "model": MODEL,
        "window": 200_000, "turns": 1, "growth_tokens": 900,
    }  # fmt: skip
    return SessionPlan(dialect=dialect, **defaults | fields)


class Recording:
    """A session written step by step; each step but `take` returns the recording itself.

    lines = Recording("claude-stream").begin().respond(90_000).compact().take()
    """

    def __init__(self, dialect: DialectName, **fields: Any) -> None:
        self.plan = plan(dialect, **fields)
        self._session = DIALECTS[dialect](self.plan)
        self._main = self._session.main
        self._main.system_tokens = 15_000
        self.subagent = SimulatedChain(
            self._main.model, 4_000, agent_id="a1b2c3d4", tool_use_id="toolu_parent"
        )

    def begin(self) -> Self:
        """Open the session."""
        self._session.begin()
        return self

    def prompt(self, text: str = "go on", chain: SimulatedChain | None = None) -> Self:
        """Let the user ask, or with a `chain` the agent that calls it."""
        self._session.prompt(chain or self._main, text)
        self._session.now_ms += 1_000
        return self

    def respond(
        self,
        used: int,
        *,
        read: int = 0,
        output: int = 35,
        chain: SimulatedChain | None = None,
        tool: bool = False,
        with_iterations: bool = False,
        edits: tuple[dict[str, Json], ...] = (),
    ) -> Self:
        """Add a response with so many tokens in its context, `read` of them cached."""
        chain = chain or self._main
        usage = SimulatedTokens(3, used - read - 3, read, output)
        self._session.respond(ModelResponse(chain, usage, edits, with_iterations, tool))
        chain.cached_tokens = used
        self._session.now_ms += 5_000
        if tool:
            self._session.tool_result(chain, "done")
        return self

    def compact(
        self,
        outcome: AttemptOutcome = "done",
        *,
        is_manual: bool = False,
        pre_tokens: int = 167_412,
        post_tokens: int = 5_210,
        duration_ms: int = 24_100,
        chain: SimulatedChain | None = None,
    ) -> Self:
        """Add an attempt to compact."""
        attempt = CompactionAttempt(outcome, is_manual, pre_tokens, post_tokens, duration_ms)
        self._session.compact(chain or self._main, attempt)
        return self

    def subagent_result(self) -> Self:
        """Return the subagent's result to the main chain."""
        self._session.subagent_result(self.subagent)
        return self

    def reset(self) -> Self:
        """Clear the conversation."""
        self._session.reset()
        return self

    def noise(self, messages: int) -> Self:
        """Add so many messages without effect on the context."""
        for _ in range(messages):
            self._session.noise(self._main)
        return self

    def end_turn(self, reason: EndReason = "completed") -> Self:
        """End the turn."""
        self._session.end_turn(reason)
        return self

    def bodies(self) -> list[dict[str, Any]]:
        """Return the messages since the last call, as objects."""
        return [codec.loads(line) for line in self.take()]

    def take(self) -> list[bytes]:
        """Return the messages since the last call, as lines."""
        return [message.value for message in self._session.take()]


def files_of(*plans: SessionPlan) -> dict[str, list[bytes]]:
    """Return the lines of sessions by their file, laid out as on disk."""
    files: dict[str, list[bytes]] = defaultdict(list)
    for message in interleave(plans):
        files[message.file].append(message.value)
    return files


def auto_compaction() -> dict[str, list[bytes]]:
    """A long transcript with one automatic compaction, its own call and subagents' files."""
    return files_of(
        plan("claude-transcript", turns=36, growth_tokens=1_100, subagents=0.1, noise=0.25)
    )


def several_lines() -> list[bytes]:
    """An early version's transcript with one automatic compaction; most responses have lines."""
    (lines,) = files_of(
        plan(
            "claude-transcript", turns=36, growth_tokens=1_100, noise=0.03, tool_loops=0.0,
            is_early=True,
        )
    ).values()  # fmt: skip
    return lines


def manual_compaction() -> list[bytes]:
    """An early version's transcript: `/clear`, one response, `/compact`, no later response."""
    recording = Recording("claude-transcript", is_early=True).begin().reset().prompt()
    recording.respond(15_660, read=13_500)
    return recording.compact(is_manual=True, pre_tokens=15_808).take()


def side_chain() -> list[bytes]:
    """An early version's transcript with a subagent in the main file, without an `agentId`."""
    recording = Recording("claude-transcript", is_early=True).begin().prompt()
    recording.respond(15_600, read=5_300, tool=True)
    recording.prompt("look around", recording.subagent)
    recording.respond(12_405, chain=recording.subagent).subagent_result()
    return recording.respond(16_029, read=15_650).take()


def rollout() -> list[bytes]:
    """A Codex rollout: five responses, their counts repeated before each further call."""
    recording = Recording("codex", model="gpt-5.2-codex", window=258_400).begin().prompt()
    for number in range(4):
        recording.respond(9_100 + 120 * number, read=6_600 + 900 * (number > 0), tool=True)
    return recording.respond(9_700, read=9_500).take()


TRANSCRIPTS = {
    "auto_compaction": lambda: next(iter(auto_compaction().values())),
    "several_lines": several_lines,
    "manual_compaction": manual_compaction,
    "side_chain": side_chain,
}
"""The main files of Claude Code, by the function that makes them."""
