"""What a simulated session is made of, whatever its runtime spells it like."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

from schemas.records import Json
from streams.core.derivation.windows import base_name
from streams.flow.simulator.draw import Draw

SpellingName: TypeAlias = Literal[
    "claude-stream",
    "claude-transcript",
    "openai-chat",
    "openai-responses",
    "gemini",
    "codex",
]

Outcome: TypeAlias = Literal[
    "done", "unmarked", "failed", "blocked", "lost-end", "lost-start", "slow"
]
"""How a compaction goes: `unmarked` ends with a bare null, `slow` sends heartbeats; of the lost
ones the end or the start is never sent."""

EndReason: TypeAlias = Literal["completed", "prompt_too_long", "blocking_limit"]


class Emitted(NamedTuple):
    """One message. `agent_id` names the subagent's file that a transcript puts it in.

    `is_named` is False where the message tells no session itself: its file, or its Kafka key,
    does.
    """

    at_ms: int
    body: dict[str, Json]
    agent_id: str | None
    is_named: bool


class Usage(NamedTuple):
    """Tokens of one response, input parts beside each other."""

    input: int
    creation: int
    read: int
    output: int

    @property
    def used(self) -> int:
        """Tokens in the context, without output."""
        return self.input + self.creation + self.read


@dataclass(slots=True)
class Chain:
    """A conversation with a model, and what is in its context, tokens."""

    model: str
    system_tokens: int
    agent_id: str | None = None
    tool_use_id: str | None = None
    cached_tokens: int = 0
    new_tokens: int = 0
    last_uuid: str | None = None

    @property
    def used_tokens(self) -> int:
        """Tokens that the next response will be told to have as input."""
        return self.cached_tokens + self.new_tokens


class Response(NamedTuple):
    """One API response of a chain."""

    chain: Chain
    usage: Usage
    edits: tuple[dict[str, Json], ...] = ()
    with_iterations: bool = False
    tool: bool = False


class Compaction(NamedTuple):
    """One attempt to compact the main chain."""

    outcome: Outcome
    is_manual: bool
    pre_tokens: int
    post_tokens: int
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How one session will go. Probabilities are per response, or per turn where said so."""

    spelling: SpellingName
    seed: str
    session_id: str
    start_ms: int
    model: str
    """As the runtime tells it, perhaps with a `[1m]`-like suffix."""
    window: int
    turns: int
    growth_tokens: int
    """Median of what a tool's result adds to the context."""
    outcomes: tuple[Outcome, ...] = ("done",)
    """How the compactions go, in turn."""
    manual_each: int = 0
    """A manual compaction at every so many turns; 0: none."""
    reset_each: int = 0
    """A cleared conversation at every so many turns; 0: none."""
    exhausted_each: int = 0
    """A turn that ends for lack of room at every so many turns; 0: none."""
    subagents: float = 0.0
    """Per turn."""
    edits: float = 0.0
    noise: float = 0.0
    """Lines that mean nothing: progress, tasks, rate limits, snapshots."""
    is_partial: bool = False
    """A stream with `stream_event` frames."""
    has_timestamps: bool = True
    is_late: bool = False
    """A version whose stream has timestamps on every frame, not only on conversation."""
    repeats: float = 0.0
    """A message sent twice in a row, as a publisher's retry does."""
    resume_each: int = 0
    """The last messages all over again at every so many turns; 0: never."""

    @property
    def base_model(self) -> str:
        """The model as responses name it."""
        return base_name(self.model)[0]


@dataclass(slots=True)
class Scene:
    """A session in play: its plan, its chance, its clock and what was emitted."""

    plan: Plan
    draw: Draw
    now_ms: int
    emitted: list[Emitted] = field(default_factory=list)

    def emit(
        self, body: dict[str, Json], agent_id: str | None = None, *, is_named: bool = True
    ) -> None:
        """Send one message now."""
        self.emitted.append(Emitted(self.now_ms, body, agent_id, is_named))

    def wait(self, low_ms: int, high_ms: int) -> None:
        """Let the session's clock run."""
        self.now_ms += self.draw.whole(low_ms, high_ms)

    def take(self) -> list[Emitted]:
        """Return what was emitted since the last call."""
        taken, self.emitted = self.emitted, []
        return taken


class Spelling(Protocol):
    """How one runtime tells what happens. What it has no message for, it does not tell."""

    def begin(self, chain: Chain) -> None:
        """Open the session."""

    def prompt(self, chain: Chain, text: str) -> None:
        """Tell what a person, or a calling agent, asked."""

    def respond(self, response: Response) -> None:
        """Tell one API response, in as many messages as the runtime takes for it."""

    def tool_result(self, chain: Chain, text: str) -> None:
        """Tell what a tool answered."""

    def compact(self, chain: Chain, compaction: Compaction) -> bool:
        """Tell an attempt to compact; return whether the context became smaller."""

    def reset(self, chain: Chain) -> None:
        """Tell that the conversation was cleared."""

    def noise(self, chain: Chain) -> None:
        """Send something that means nothing for the context."""

    def end_turn(self, chain: Chain, reason: EndReason) -> None:
        """Tell that the turn is over."""
