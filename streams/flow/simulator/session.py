"""What simulated sessions consist of, independent of how a runtime writes it down.

A `SessionPlan` says how a session goes. `session_script` turns it into steps (a prompt, a
response, a compaction), and the `Dialect` of the session's runtime turns each step into messages.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias

from schemas.records import Json
from streams.core.derivation.windows import base_name
from streams.flow.simulator.random_source import RandomSource

DialectName: TypeAlias = Literal[
    "claude-stream",
    "claude-transcript",
    "openai-chat",
    "openai-responses",
    "gemini",
    "codex",
]

AttemptOutcome: TypeAlias = Literal[
    "done", "unmarked", "failed", "blocked", "lost-end", "lost-start", "slow", "server"
]
"""How a compaction attempt goes. `unmarked` ends with a bare null status as older runtimes send
it, `slow` sends heartbeats; with `lost-end` and `lost-start` that part is never sent. `server` is
a compaction by Anthropic's API, within a response."""

EndReason: TypeAlias = Literal["completed", "prompt_too_long", "blocking_limit"]


def iso(time_ms: int) -> str:
    """Return a time in the format of the runtimes' timestamps."""
    time = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


class EmittedMessage(NamedTuple):
    """One message. `agent_id` selects the subagent's file that a transcript writes it to.

    `is_named` is False where the message does not contain its session: the file or the Kafka key
    identifies it.
    """

    at_ms: int
    body: dict[str, Json]
    agent_id: str | None
    is_named: bool


class TokenCounts(NamedTuple):
    """Tokens of one response; the three input parts do not overlap."""

    input: int
    creation: int
    read: int
    output: int

    @property
    def used(self) -> int:
        """Tokens in the context, without output."""
        return self.input + self.creation + self.read

    def plus(self, other: "TokenCounts") -> "TokenCounts":
        """Return the sum, part by part."""
        return TokenCounts(*(a + b for a, b in zip(self, other, strict=True)))


NO_TOKENS = TokenCounts(0, 0, 0, 0)


@dataclass(slots=True)
class SimulatedChain:
    """A conversation with a model, and the tokens in its context."""

    model: str
    system_tokens: int
    agent_id: str | None = None
    tool_use_id: str | None = None
    cached_tokens: int = 0
    new_tokens: int = 0
    last_uuid: str | None = None

    @property
    def used_tokens(self) -> int:
        """Input tokens of the next response."""
        return self.cached_tokens + self.new_tokens


class ModelResponse(NamedTuple):
    """One API response in a chain."""

    chain: SimulatedChain
    usage: TokenCounts
    edits: tuple[dict[str, Json], ...] = ()
    with_iterations: bool = False
    tool: bool = False
    is_compacted: bool = False
    """The API compacted the context within this response."""


class CompactionAttempt(NamedTuple):
    """One attempt to compact the main chain."""

    outcome: AttemptOutcome
    is_manual: bool
    pre_tokens: int
    post_tokens: int
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """How one session goes. Probabilities are per response, unless stated otherwise."""

    dialect: DialectName
    seed: str
    session_id: str
    start_ms: int
    model: str
    """As the runtime reports it, possibly with a suffix such as `[1m]`."""
    window: int
    turns: int
    growth_tokens: int
    """Median of what a tool result adds to the context."""
    outcomes: tuple[AttemptOutcome, ...] = ("done",)
    """Outcomes of the compaction attempts, in turn."""
    manual_each: int = 0
    """A manual compaction every so many turns; 0: never."""
    reset_each: int = 0
    """A cleared conversation every so many turns; 0: never."""
    exhausted_each: int = 0
    """A turn that ends for lack of room every so many turns; 0: never."""
    subagents: float = 0.0
    """Probability per turn."""
    edits: float = 0.0
    tool_loops: float = 0.1
    """Claude's responses that consist of several calls, with the API's own tools."""
    noise: float = 0.0
    """Messages without effect on the context: progress, tasks, rate limits, snapshots."""
    is_partial: bool = False
    """A stream with `stream_event` frames."""
    has_timestamps: bool = True
    is_late: bool = False
    """A runtime version whose stream has timestamps on every frame, not only on conversation."""
    is_early: bool = False
    """A Claude Code before 2.1: subagents write to the main file, without an `agentId`."""
    rare: float = 0.0
    """Rare frames of Claude's stream: retries, estimates, background tasks, `/context`."""
    repeats: float = 0.0
    """A message sent twice in a row, as a publisher's retry does."""
    resume_each: int = 0
    """The last messages sent again every so many turns, as after a resume; 0: never."""

    @property
    def base_model(self) -> str:
        """The model as responses name it."""
        return base_name(self.model)[0]


@dataclass(slots=True)
class SimulatedSession:
    """A running session: its plan, random source, clock and emitted messages."""

    plan: SessionPlan
    random: RandomSource
    now_ms: int
    emitted: list[EmittedMessage] = field(default_factory=list)

    def emit(
        self, body: dict[str, Json], agent_id: str | None = None, *, is_named: bool = True
    ) -> None:
        """Emit one message at the current time."""
        self.emitted.append(EmittedMessage(self.now_ms, body, agent_id, is_named))

    def wait(self, low_ms: int, high_ms: int) -> None:
        """Advance the session's clock by a random time."""
        self.now_ms += self.random.integer(low_ms, high_ms)

    def take(self) -> list[EmittedMessage]:
        """Return the messages emitted since the last call."""
        messages, self.emitted = self.emitted, []
        return messages


class Dialect(Protocol):
    """How one runtime reports a session. A step that it has no message for goes unreported."""

    def begin(self, chain: SimulatedChain) -> None:
        """Open the session."""

    def prompt(self, chain: SimulatedChain, text: str) -> None:
        """Report a prompt of the user, or of the agent that calls a subagent."""

    def respond(self, response: ModelResponse) -> None:
        """Report one API response, in as many messages as the runtime uses for it."""

    def tool_result(self, chain: SimulatedChain, text: str) -> None:
        """Report a tool's result."""

    def subagent_result(self, chain: SimulatedChain, subagent: SimulatedChain) -> None:
        """Report the end of a subagent to the chain that called it."""

    def compact(self, chain: SimulatedChain, attempt: CompactionAttempt) -> bool:
        """Report an attempt to compact; return whether the context became smaller."""

    def reset(self, chain: SimulatedChain) -> None:
        """Report that the conversation was cleared."""

    def noise(self, chain: SimulatedChain) -> None:
        """Send a message that has no effect on the context."""

    def end_turn(self, chain: SimulatedChain, reason: EndReason) -> None:
        """Report the end of a turn."""
